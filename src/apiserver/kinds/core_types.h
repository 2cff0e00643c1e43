/* The types of the core kinds, as tables: what core_schema.c makes schemas of. */
#pragma once

struct core_type {
    const char *name;   /* "PodSpec"; NULL ends the table */
    const char *fields; /* "containers:[]Container! nodeName:string ..." */
};
extern const struct core_type core_types[];

struct core_text {
    const char *what; /* "PodSpec" or "PodSpec.nodeName"; NULL ends the table */
    const char *text;
};
/* What kubectl explain says of them. */
extern const struct core_text core_texts[];
