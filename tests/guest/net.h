/* The first virtio network card: answers ARP and ICMP echo for one IPv4 address. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* `address` in network order; 0 = the card is left alone. */
void net_init(uint32_t address);
bool net_is_up(void);
/* Answers what has come in. */
void net_answer(void);
