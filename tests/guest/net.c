/* Theory of operation. Two queues of a legacy virtio card, looked at, without interrupts. Each
 * received frame lies in a buffer of its own; an answer is made in a copy and sent before the
 * buffer is given back, one at a time. */
#include "net.h"

#include <stddef.h>

#include "machine.h"
#include "pci.h"

enum {
    VIRTIO_VENDOR_NET = 0x10001af4,
    GUEST_FEATURES = 4,
    QUEUE_ADDRESS = 8,
    QUEUE_SIZE = 12,
    QUEUE_SELECT = 14,
    QUEUE_NOTIFY = 16,
    STATUS = 18,
    MAC = 20,
    STATUS_DRIVER_OK = 7,
    FEATURE_MAC = 1 << 5,
    QUEUE_MAX = 1024,
    DESC_WRITE = 2, /* by the device */
    PAGE = 4096,
    BUFFERS = 32,
    FRAME_MAX = 1526,
    HEADER = 10, /* virtio's own, before each frame */
    RECEIVE = 0,
    SEND = 1,
    TYPE_ARP = 0x0608, /* as they are read on this machine */
    TYPE_IP = 0x0008,
    ARP_REQUEST = 0x0100,
    ARP_REPLY = 0x0200,
    PROTOCOL_ICMP = 1,
    ICMP_ECHO = 8,
};

struct descriptor {
    uint64_t address;
    uint32_t length;
    uint16_t flags, next;
};

struct queue {
    _Alignas(PAGE) struct descriptor table[QUEUE_MAX];
    uint8_t rings[4 * PAGE];
    uint16_t size, next, seen;
    volatile uint16_t *available; /* flags, index, ring */
    volatile uint16_t *used;      /* flags, index, {id, length}... */
};

struct __attribute__((packed)) frame {
    uint8_t virtio[HEADER];
    uint8_t to[6], from[6];
    uint16_t type;
    union {
        struct __attribute__((packed)) {
            uint16_t hardware, protocol;
            uint8_t sizes[2];
            uint16_t operation;
            uint8_t sender_mac[6];
            uint32_t sender;
            uint8_t target_mac[6];
            uint32_t target;
        } arp;
        struct __attribute__((packed)) {
            uint8_t version, service;
            uint16_t length, id, offset;
            uint8_t ttl, protocol;
            uint16_t sum;
            uint32_t source, destination;
            uint8_t icmp_type, icmp_code;
            uint16_t icmp_sum;
        } ip;
        uint8_t bytes[FRAME_MAX - HEADER - 14];
    } u;
};

static struct queue queues[2];
static struct frame received[BUFFERS], answer;
static uint16_t port;
static uint32_t mine;
static uint8_t mac[6];

static void copy(void *to, const void *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        ((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
    }
}

/* ---- queues -----------------------------------------------------------------------------------
 */

static bool start_queue(uint16_t number)
{
    struct queue *q = &queues[number];

    machine_out16(port + QUEUE_SELECT, number);
    q->size = machine_in16(port + QUEUE_SIZE);
    if (q->size < BUFFERS || q->size > QUEUE_MAX) {
        return false;
    }
    uint32_t at = (uint32_t)q, ring = at + q->size * sizeof(struct descriptor);
    q->available = (volatile uint16_t *)ring;
    q->used = (volatile uint16_t *)((ring + 6 + 2u * q->size + PAGE - 1) & ~(PAGE - 1u));
    q->available[0] = 1; /* no interrupts */
    machine_out32(port + QUEUE_ADDRESS, at / PAGE);
    return true;
}

static void offer(struct queue *q, uint16_t id)
{
    q->available[2 + q->next % q->size] = id;
    __asm__ volatile("" : : : "memory");
    q->available[1] = ++q->next;
}

/* The oldest frame that the device is through with; false when there is none. */
static bool take(struct queue *q, uint32_t *ret_id, uint32_t *ret_length)
{
    if (q->used[1] == q->seen) {
        return false;
    }
    __asm__ volatile("" : : : "memory");
    const volatile uint32_t *entry =
        (const volatile uint32_t *)(q->used + 2) + (size_t)(q->seen++ % q->size) * 2;
    *ret_id = entry[0];
    *ret_length = entry[1];
    return true;
}

static void send_answer(uint32_t length)
{
    struct queue *q = &queues[SEND];
    uint32_t id, written;

    q->table[0] = (struct descriptor){(uint32_t)&answer, length, 0, 0};
    offer(q, 0);
    machine_out16(port + QUEUE_NOTIFY, SEND);
    while (!take(q, &id, &written)) {
        __asm__ volatile("pause" : : : "memory");
    }
}

/* ---- protocols --------------------------------------------------------------------------------
 */

static void answer_arp(const struct frame *f, uint32_t length)
{
    copy(&answer, f, length);
    copy(answer.u.arp.target_mac, f->u.arp.sender_mac, sizeof(mac));
    answer.u.arp.target = f->u.arp.sender;
    copy(answer.u.arp.sender_mac, mac, sizeof(mac));
    answer.u.arp.sender = mine;
    answer.u.arp.operation = ARP_REPLY;
}

/* A reply differs from its request in the type alone: the sum grows by what that lost. */
static void answer_echo(const struct frame *f, uint32_t length)
{
    uint32_t sum = f->u.ip.icmp_sum + ICMP_ECHO;

    copy(&answer, f, length);
    answer.u.ip.source = f->u.ip.destination;
    answer.u.ip.destination = f->u.ip.source;
    answer.u.ip.icmp_type = 0;
    answer.u.ip.icmp_sum = (uint16_t)(sum + (sum >> 16));
}

static void look_at(const struct frame *f, uint32_t length)
{
    bool arp = f->type == TYPE_ARP && f->u.arp.operation == ARP_REQUEST && f->u.arp.target == mine;
    bool echo = f->type == TYPE_IP && f->u.ip.version == 0x45 &&
                f->u.ip.protocol == PROTOCOL_ICMP && f->u.ip.destination == mine &&
                f->u.ip.icmp_type == ICMP_ECHO;

    if (length < HEADER + 42 || length > sizeof(*f) || (!arp && !echo)) {
        return;
    }
    if (arp) {
        answer_arp(f, length);
    } else {
        answer_echo(f, length);
    }
    for (int i = 0; i < HEADER; i++) {
        answer.virtio[i] = 0;
    }
    copy(answer.to, f->from, sizeof(mac));
    copy(answer.from, mac, sizeof(mac));
    send_answer(length);
}

/* ---- life -------------------------------------------------------------------------------------
 */

static bool start(uint32_t slot)
{
    port = pci_enable(slot);
    machine_out8(port + STATUS, 0);
    machine_out8(port + STATUS, 3);
    machine_out32(port + GUEST_FEATURES, FEATURE_MAC);
    if (!start_queue(RECEIVE) || !start_queue(SEND)) {
        return false;
    }
    for (uint16_t i = 0; i < 3; i++) {
        uint16_t two = machine_in16((uint16_t)(port + MAC + 2 * i));

        copy(mac + 2 * i, &two, 2);
    }
    for (uint16_t i = 0; i < BUFFERS; i++) {
        queues[RECEIVE].table[i] =
            (struct descriptor){(uint32_t)&received[i], sizeof(received[i]), DESC_WRITE, 0};
        offer(&queues[RECEIVE], i);
    }
    machine_out8(port + STATUS, STATUS_DRIVER_OK);
    machine_out16(port + QUEUE_NOTIFY, RECEIVE);
    return true;
}

void net_init(uint32_t address)
{
    for (uint32_t slot = 0; address && slot < PCI_SLOTS && !mine; slot++) {
        if (pci_device(slot) == VIRTIO_VENDOR_NET && start(slot)) {
            mine = address;
        }
    }
}

bool net_is_up(void)
{
    return mine != 0;
}

void net_answer(void)
{
    uint32_t id, length;
    bool any = false;

    while (mine && take(&queues[RECEIVE], &id, &length)) {
        look_at(&received[id % BUFFERS], length);
        offer(&queues[RECEIVE], (uint16_t)(id % BUFFERS));
        any = true;
    }
    if (any) {
        machine_out16(port + QUEUE_NOTIFY, RECEIVE);
    }
}
