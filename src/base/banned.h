/* Functions that are easy to use wrongly or have no place in a program with threads. The build
 * includes this before every file of src; whoever calls one of them is told what to call instead:
 * "strcpy_is_banned_use_ferry_strdup_or_snprintf undeclared". The headers that declare them come
 * first, so that they may. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FERRY_BANNED(name, instead) name##_is_banned_use_##instead

#undef sprintf
#define sprintf(...) FERRY_BANNED(sprintf, snprintf)
#undef vsprintf
#define vsprintf(...) FERRY_BANNED(vsprintf, snprintf)

#undef strcpy
#define strcpy(...) FERRY_BANNED(strcpy, ferry_strdup_or_snprintf)
#undef strncpy
#define strncpy(...) FERRY_BANNED(strncpy, ferry_strdup_or_snprintf)
#undef stpcpy
#define stpcpy(...) FERRY_BANNED(stpcpy, ferry_strdup_or_snprintf)
#undef stpncpy
#define stpncpy(...) FERRY_BANNED(stpncpy, ferry_strdup_or_snprintf)
#undef strcat
#define strcat(...) FERRY_BANNED(strcat, ferry_strdup_or_snprintf)
#undef strncat
#define strncat(...) FERRY_BANNED(strncat, ferry_strdup_or_snprintf)

#undef gets
#define gets(...) FERRY_BANNED(gets, ferry_read_file)

#undef strtok
#define strtok(...) FERRY_BANNED(strtok, strtok_r)

#undef atoi
#define atoi(...) FERRY_BANNED(atoi, ferry_parse_int)
#undef atol
#define atol(...) FERRY_BANNED(atol, ferry_parse_int)
#undef atoll
#define atoll(...) FERRY_BANNED(atoll, ferry_parse_int)
#undef atof
#define atof(...) FERRY_BANNED(atof, ferry_parse_int)

#undef gmtime
#define gmtime(...) FERRY_BANNED(gmtime, gmtime_r)

#undef localtime
#define localtime(...) FERRY_BANNED(localtime, localtime_r)

#undef asctime
#define asctime(...) FERRY_BANNED(asctime, ferry_rfc3339)
#undef asctime_r
#define asctime_r(...) FERRY_BANNED(asctime_r, ferry_rfc3339)
#undef ctime
#define ctime(...) FERRY_BANNED(ctime, ferry_rfc3339)
#undef ctime_r
#define ctime_r(...) FERRY_BANNED(ctime_r, ferry_rfc3339)

#undef rand
#define rand(...) FERRY_BANNED(rand, getrandom)
#undef srand
#define srand(...) FERRY_BANNED(srand, getrandom)
#undef random
#define random(...) FERRY_BANNED(random, getrandom)
#undef srandom
#define srandom(...) FERRY_BANNED(srandom, getrandom)
#undef drand48
#define drand48(...) FERRY_BANNED(drand48, getrandom)

#undef system
#define system(...) FERRY_BANNED(system, ferry_run)
#undef popen
#define popen(...) FERRY_BANNED(popen, ferry_run)

#undef alloca
#define alloca(...) FERRY_BANNED(alloca, ferry_xcalloc)
#undef strdupa
#define strdupa(...) FERRY_BANNED(strdupa, ferry_xcalloc)
#undef strndupa
#define strndupa(...) FERRY_BANNED(strndupa, ferry_xcalloc)

#undef mktemp
#define mktemp(...) FERRY_BANNED(mktemp, mkostemp)
#undef tmpnam
#define tmpnam(...) FERRY_BANNED(tmpnam, mkostemp)
#undef tmpnam_r
#define tmpnam_r(...) FERRY_BANNED(tmpnam_r, mkostemp)
#undef tempnam
#define tempnam(...) FERRY_BANNED(tempnam, mkostemp)

#undef usleep
#define usleep(...) FERRY_BANNED(usleep, ferry_sleep_ms)
