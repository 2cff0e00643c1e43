#include "pci.h"

#include "machine.h"

enum { ADDRESS = 0xcf8, DATA = 0xcfc, COMMAND = 4, BAR0 = 16, PORTS_AND_MASTER = 5 };

static uint32_t read(uint32_t slot, uint32_t offset)
{
    machine_out32(ADDRESS, 0x80000000u | slot << 11 | offset);
    return machine_in32(DATA);
}

uint32_t pci_device(uint32_t slot)
{
    return read(slot, 0);
}

uint16_t pci_enable(uint32_t slot)
{
    uint32_t command = read(slot, COMMAND) | PORTS_AND_MASTER;

    machine_out32(ADDRESS, 0x80000000u | slot << 11 | COMMAND);
    machine_out32(DATA, command);
    return (uint16_t)(read(slot, BAR0) & ~3u);
}
