/* Theory of operation. One request at a time, waited for by looking: the devices' interrupts stay
 * masked. All blocks of all disks are numbered in a row; block N of the row belongs to disk
 * N / per_disk. A block whose number is below `cursor` has the next generation already. */
#include "disk.h"

#include <stddef.h>

#include "machine.h"
#include "pci.h"

enum {
    VIRTIO_VENDOR_BLOCK = 0x10011af4, /* device and vendor */
    /* legacy virtio header, in I/O space */
    GUEST_FEATURES = 4,
    QUEUE_ADDRESS = 8,
    QUEUE_SIZE = 12,
    QUEUE_SELECT = 14,
    QUEUE_NOTIFY = 16,
    STATUS = 18,
    CAPACITY = 20, /* sectors */
    STATUS_DRIVER_OK = 7,
    QUEUE_MAX = 1024, /* the device chooses: 256 in QEMU 10.0.2, 1024 in 10.0.13 */
    DESC_NEXT = 1,
    DESC_WRITE = 2, /* by the device */
    SECTORS_PER_BLOCK = DISK_BLOCK / 512,
    BLOCKS_PER_MIB = 256,
    WORDS = DISK_BLOCK / 4,
    REPORTED_MAX = 3,
    PAGE = 4096,
};

struct descriptor {
    uint64_t address;
    uint32_t length;
    uint16_t flags, next;
};

struct queue {
    _Alignas(PAGE) struct descriptor table[QUEUE_MAX];
    uint8_t rings[4 * PAGE];
};

struct disk {
    uint16_t port, queue_size, next;
    volatile uint16_t *available; /* flags, index, ring */
    volatile uint16_t *used;      /* flags, index, ... */
    struct queue queue;
};

static struct disk disks[DISK_MAX];
static uint32_t n_disks, per_disk, cursor, generation, bad;
static uint32_t buffer[WORDS];
static struct {
    uint32_t type, reserved;
    uint64_t sector;
} header;
static volatile uint8_t outcome;

/* ---- requests ---------------------------------------------------------------------------------
 */

/* The rings lie behind `queue_size` descriptors; the device's begins at the next page. */
static bool start(struct disk *d, uint32_t slot)
{
    d->port = pci_enable(slot);
    machine_out8(d->port + STATUS, 0);
    machine_out8(d->port + STATUS, 3);
    machine_out32(d->port + GUEST_FEATURES, 0);
    machine_out16(d->port + QUEUE_SELECT, 0);
    d->queue_size = machine_in16(d->port + QUEUE_SIZE);
    if (d->queue_size == 0 || d->queue_size > QUEUE_MAX) {
        return false;
    }
    uint32_t at = (uint32_t)&d->queue, ring = at + d->queue_size * sizeof(struct descriptor);
    d->available = (volatile uint16_t *)ring;
    d->used = (volatile uint16_t *)((ring + 6 + 2u * d->queue_size + PAGE - 1) & ~(PAGE - 1u));
    d->available[0] = 1; /* no interrupts */
    machine_out32(d->port + QUEUE_ADDRESS, at / PAGE);
    machine_out8(d->port + STATUS, STATUS_DRIVER_OK);
    return true;
}

/* Block `n` of the disk to or from `buffer`; false when the device says that it failed. */
static bool transfer(struct disk *d, uint32_t n, bool write)
{
    header.type = write;
    header.sector = (uint64_t)n * SECTORS_PER_BLOCK;
    outcome = 0xff;
    d->queue.table[0] = (struct descriptor){(uint32_t)&header, sizeof(header), DESC_NEXT, 1};
    d->queue.table[1] =
        (struct descriptor){(uint32_t)buffer, DISK_BLOCK, DESC_NEXT | (write ? 0 : DESC_WRITE), 2};
    d->queue.table[2] = (struct descriptor){(uint32_t)&outcome, 1, DESC_WRITE, 0};
    d->available[2 + d->next % d->queue_size] = 0;
    __asm__ volatile("" : : : "memory");
    d->available[1] = ++d->next;
    machine_out16(d->port + QUEUE_NOTIFY, 0);
    while (d->used[1] != d->next) {
        __asm__ volatile("pause" : : : "memory");
    }
    __asm__ volatile("" : : : "memory");
    return outcome == 0;
}

/* ---- pattern ----------------------------------------------------------------------------------
 */

static uint32_t seed(uint32_t block, uint32_t gen)
{
    return (block + 1) * 2654435761u ^ gen * 0x85ebca6bu;
}

static bool put(uint32_t block, uint32_t gen)
{
    uint32_t x = seed(block, gen);

    for (int i = 0; i < WORDS; i++) {
        buffer[i] = x;
        x = x * 1664525u + 1013904223u;
    }
    return transfer(&disks[block / per_disk], block % per_disk, true);
}

static bool holds(uint32_t block, uint32_t gen)
{
    uint32_t x = seed(block, gen);

    if (!transfer(&disks[block / per_disk], block % per_disk, false)) {
        return false;
    }
    for (int i = 0; i < WORDS; i++) {
        if (buffer[i] != x) {
            return false;
        }
        x = x * 1664525u + 1013904223u;
    }
    return true;
}

void disk_init(uint32_t mib)
{
    per_disk = mib * BLOCKS_PER_MIB;
    for (uint32_t slot = 0; mib && slot < 32 && n_disks < DISK_MAX; slot++) {
        struct disk *d = &disks[n_disks];

        if (pci_device(slot) == VIRTIO_VENDOR_BLOCK && start(d, slot)) {
            uint32_t blocks = machine_in32(d->port + CAPACITY) / SECTORS_PER_BLOCK;

            per_disk = blocks < per_disk ? blocks : per_disk;
            n_disks++;
        }
    }
    for (uint32_t b = 0; b < disk_blocks(); b++) {
        bad += !put(b, 0);
    }
}

uint32_t disk_count(void)
{
    return n_disks;
}

uint32_t disk_blocks(void)
{
    return n_disks * per_disk;
}

uint32_t disk_bad(void)
{
    return bad;
}

static void say(uint32_t block)
{
    machine_put_field("CORRUPT disk=", block / per_disk);
    machine_put_field(" block=", block % per_disk);
    machine_puts("\n");
}

void disk_dirty(uint32_t n)
{
    for (; n && disk_blocks(); n--) {
        if (!holds(cursor, generation) && ++bad <= REPORTED_MAX) {
            say(cursor);
        }
        bad += !put(cursor, generation + 1);
        if (++cursor == disk_blocks()) {
            cursor = 0;
            generation++;
        }
    }
}

bool disk_check(uint32_t block, bool report)
{
    bool right = holds(block, block < cursor ? generation + 1 : generation);

    if (!right && report) {
        say(block);
    }
    return right;
}
