/* The test guest: proves by its own word that it lost nothing.
 *
 * It boots in a fraction of a second, writes a heartbeat line at a steady pace, dirties memory at
 * a given rate with a pattern that it verifies before each rewrite, and checks all of its memory on
 * request. Kernel command line, all optional:
 *
 *   ws=MIB         working set (16)
 *   rate=MIB|max   how much of it is rewritten per second (1)
 *   hb=N           heartbeat lines per second, 1 to 100 (20)
 *   fill=word|half|rand  pages that compress well, by half, or not at all (word)
 *   static=MIB     memory beyond the working set that gets a pattern once, at boot (8)
 *   cover=ws|all   all: everything beyond the working set gets the pattern (ws)
 *   disk=MIB       pattern on the first MIB of each virtio disk (0: disks are left alone)
 *   drate=KIB      how much of that is rewritten per second, if the disk can (256)
 *   net=A.B.C.D    the first virtio network card answers ARP and pings at that address (it is left
 * alone) acpi=on|off    off: the power button is ignored (on) poweroff=S     powers off after S
 * seconds
 *
 * Lines that it writes: BOOT, READY, `HB 123 t=456 gen=1 pg=34567 bad=0` (sequence, timer ticks of
 * 10 ms, generation of the working set, pages written, bad pages and disk blocks met), VERIFY,
 * CORRUPT, BYE. On the serial line it understands the letter v (check all memory and all disk
 * blocks of the pattern, answers with `VERIFY pages=N bad=N`, blocks counted as pages) and the
 * lines "poweroff" and "reset", nothing shorter: people type here. */
#include <stddef.h>

#include "disk.h"
#include "machine.h"
#include "memory.h"
#include "net.h"

enum {
    MULTIBOOT_LOADED = 0x2BADB002,
    CHECK_SLICE = 128,
    DISK_SLICE = 16,
    DISK_CHECK_SLICE = 32,
    FULL_SPEED_SLICE = 64,
    REPORTED_MAX = 3,
};

struct multiboot_info {
    uint32_t flags, mem_lower, mem_upper, boot_device;
    const char *cmdline;
};

struct settings {
    uint32_t rate, disk_rate, every, poweroff_s;
    bool full_speed, acpi;
};

void guest_main(uint32_t magic, const struct multiboot_info *info);

/* Start of the value of `key` ("ws="), which stands at the start of a word; NULL when absent. */
static const char *value_of(const char *line, const char *key)
{
    for (const char *at = line; *at; at++) {
        const char *a = at, *k = key;

        if (at != line && at[-1] != ' ') {
            continue;
        }
        while (*k && *a == *k) {
            a++;
            k++;
        }
        if (!*k) {
            return a;
        }
    }
    return NULL;
}

static uint32_t number_of(const char *line, const char *key, uint32_t absent)
{
    const char *v = value_of(line, key);
    uint32_t n = 0;

    if (!v || *v < '0' || *v > '9') {
        return absent;
    }
    for (; *v >= '0' && *v <= '9'; v++) {
        n = n * 10 + (uint32_t)(*v - '0');
    }
    return n;
}

static bool letter_is(const char *line, const char *key, char letter)
{
    const char *v = value_of(line, key);

    return v && *v == letter;
}

/* "10.0.0.1" in network order; 0 when it is absent. */
static uint32_t address_of(const char *line, const char *key)
{
    const char *v = value_of(line, key);
    uint32_t address = 0, part = 0;
    int shift = 0;

    for (; v && shift < 32; v++) {
        if (*v >= '0' && *v <= '9') {
            part = part * 10 + (uint32_t)(*v - '0');
            continue;
        }
        address |= (part & 255) << shift;
        shift += 8;
        part = 0;
        if (*v != '.') {
            break;
        }
    }
    return shift == 32 ? address : 0;
}

static void configure(const char *line, uint32_t magic, uint32_t upper_kib, struct settings *set)
{
    struct memory_layout layout = {
        .working_mib = number_of(line, "ws=", 16),
        .static_mib = number_of(line, "static=", 8),
        .cover_all = letter_is(line, "cover=", 'a'),
        .noise = letter_is(line, "fill=", 'r')   ? MEMORY_PAGE / 4
                 : letter_is(line, "fill=", 'h') ? MEMORY_PAGE / 8
                                                 : 0,
    };
    uint32_t beats = number_of(line, "hb=", 20);
    const char *acpi = value_of(line, "acpi=");

    set->rate = number_of(line, "rate=", 1);
    set->disk_rate = number_of(line, "drate=", 256);
    set->full_speed = letter_is(line, "rate=", 'm');
    set->poweroff_s = number_of(line, "poweroff=", 0);
    set->acpi = !acpi || acpi[1] != 'f';
    set->every = MACHINE_HZ / (beats == 0 || beats > MACHINE_HZ ? MACHINE_HZ : beats);
    machine_put_field("BOOT magic_ok=", magic == MULTIBOOT_LOADED);
    machine_put_field(" memKiB=", upper_kib);
    memory_init(&layout, 0x100000u + upper_kib * 1024u);
    machine_put_field(" ws=", memory_working_mib());
    machine_put_field(" static=", memory_static_mib());
    machine_put_field(" rate=", set->rate);
    machine_puts(set->full_speed ? " full-speed" : "");
    machine_put_field(" noise=", layout.noise);
    disk_init(number_of(line, "disk=", 0));
    machine_put_field(" disks=", disk_count());
    machine_put_field(" blocks=", disk_blocks());
    net_init(address_of(line, "net="));
    machine_puts(net_is_up() ? " net" : "");
    machine_puts("\nREADY\n");
}

static void say_heartbeat(uint32_t tick)
{
    static uint32_t sequence;

    machine_put_field("HB ", sequence++);
    machine_put_field(" t=", tick);
    machine_put_field(" gen=", memory_generation());
    machine_put_field(" pg=", memory_pages_written());
    machine_put_field(" bad=", memory_bad() + disk_bad());
    machine_puts("\n");
}

static void power_off(void)
{
    machine_puts("BYE\n");
    machine_power_off();
}

/* A check that is asked for while one runs follows it. Memory first, then the disks. */
struct checking {
    bool running, wanted;
    struct memory_check memory;
    uint32_t block, bad_blocks;
};

/* True when all blocks were looked at. */
static bool check_disks(struct checking *c)
{
    for (int n = 0; n < DISK_CHECK_SLICE && c->block < disk_blocks(); n++, c->block++) {
        c->bad_blocks += !disk_check(c->block, c->bad_blocks < REPORTED_MAX);
    }
    return c->block == disk_blocks();
}

static void go_on_checking(struct checking *c)
{
    if (!c->running && c->wanted) {
        c->wanted = false;
        c->running = true;
        c->block = c->bad_blocks = 0;
        memory_check_start(&c->memory);
    }
    if (c->running && memory_check_step(&c->memory, CHECK_SLICE) && check_disks(c)) {
        c->running = false;
        machine_put_field("VERIFY pages=", c->memory.total + disk_blocks());
        machine_put_field(" bad=", c->memory.bad + c->bad_blocks);
        machine_puts("\n");
    }
}

enum command { COMMAND_NONE, COMMAND_POWER_OFF, COMMAND_RESET };

/* The command that `c` ends: a line that is its word and nothing else. */
static enum command command_of(int c)
{
    static const struct {
        const char *word;
        enum command command;
    } words[] = {{"poweroff", COMMAND_POWER_OFF}, {"reset", COMMAND_RESET}};
    static char line[16];
    static size_t n;
    enum command found = COMMAND_NONE;

    if (c != '\r' && c != '\n') {
        line[n < sizeof(line) - 1 ? n++ : n] = (char)c;
        return COMMAND_NONE;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t k = 0;

        while (k < n && words[i].word[k] == line[k]) {
            k++;
        }
        found = k == n && !words[i].word[k] ? words[i].command : found;
    }
    n = 0;
    return found;
}

static void once_a_tick(const struct settings *set, struct checking *checking, uint32_t last,
                        uint32_t tick)
{
    if (tick / set->every != last / set->every) {
        say_heartbeat(tick);
    }
    for (int c = machine_getc(); c >= 0; c = machine_getc()) {
        if (c == 'v') {
            checking->wanted = true;
        }
        switch (command_of(c)) {
        case COMMAND_POWER_OFF:
            power_off();
            break;
        case COMMAND_RESET:
            machine_reset();
            break;
        case COMMAND_NONE:
            break;
        }
    }
    if ((set->acpi && machine_power_button()) ||
        (set->poweroff_s && tick >= set->poweroff_s * MACHINE_HZ)) {
        power_off();
    }
}

void guest_main(uint32_t magic, const struct multiboot_info *info)
{
    struct settings set;
    struct checking checking = {0};
    uint32_t last = 0, owed = 0, disk_owed = 0; /* what is to be dirtied, times MACHINE_HZ */

    machine_init();
    configure(info->flags & 4 ? info->cmdline : "", magic, info->flags & 1 ? info->mem_upper : 0,
              &set);
    machine_interrupts_on();
    for (;;) {
        uint32_t tick = machine_ticks, pages = 0;

        if (set.full_speed) {
            pages = FULL_SPEED_SLICE;
        } else if (tick != last) {
            owed += (tick - last) * set.rate * (1048576 / MEMORY_PAGE);
            pages = owed / MACHINE_HZ;
            owed %= MACHINE_HZ;
        }
        if (pages > memory_working_pages()) {
            pages = memory_working_pages();
        }
        memory_dirty(pages);
        if (tick != last) {
            disk_owed += (tick - last) * set.disk_rate / (DISK_BLOCK / 1024);
            uint32_t blocks = disk_owed / MACHINE_HZ;
            /* a disk that cannot keep up must not hold up the heartbeat */
            disk_dirty(blocks < DISK_SLICE ? blocks : DISK_SLICE);
            disk_owed %= MACHINE_HZ;
        }
        if (tick != last) {
            once_a_tick(&set, &checking, last, tick);
            last = tick;
        }
        net_answer();
        go_on_checking(&checking);
        if (!set.full_speed && !checking.running && !checking.wanted) {
            machine_wait_tick(last);
        }
    }
}
