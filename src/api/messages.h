/* Words that one program writes into an object and another one looks for. */
#pragma once

/* Begins what is said of a move (annotation ferry.io/queue) that no other node has the CPU for. */
#define API_NO_NODE_WITH_CPU "no other node has its CPU"
/* The same of the machine type that QEMU gave the guest. */
#define API_NO_NODE_WITH_MACHINE "no other node has its machine type"
