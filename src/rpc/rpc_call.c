#include "rpc/rpc_call.h"

bool rpc_call_nothing(struct rpc_xdr *x)
{
    return rpc_xdr_done(x);
}

bool rpc_call_open(struct rpc_xdr *x, struct rpc_open *ret)
{
    ret->named = rpc_xdr_optional(x, RPC_STRING_MAX, &ret->name);
    ret->flags = rpc_xdr_u32(x);
    return rpc_xdr_done(x);
}

bool rpc_call_feature(struct rpc_xdr *x, int32_t *ret)
{
    *ret = rpc_xdr_i32(x);
    return rpc_xdr_done(x);
}

bool rpc_call_compare_cpu(struct rpc_xdr *x, struct rpc_compare_cpu *ret)
{
    struct rpc_text other;

    ret->has_emulator = rpc_xdr_optional(x, RPC_STRING_MAX, &ret->emulator);
    rpc_xdr_optional(x, RPC_STRING_MAX, &other); /* architecture */
    rpc_xdr_optional(x, RPC_STRING_MAX, &other); /* machine */
    rpc_xdr_optional(x, RPC_STRING_MAX, &other); /* kind of virtualisation */
    rpc_xdr_bytes(x, RPC_CALL_MAX);              /* the CPU's XML, which libvirt compares */
    rpc_xdr_u32(x);
    return rpc_xdr_done(x);
}

static void read_value(struct rpc_xdr *x, struct rpc_param *p)
{
    switch (p->type) {
    case RPC_PARAM_INT:
    case RPC_PARAM_UINT:
    case RPC_PARAM_BOOLEAN:
        p->number = rpc_xdr_u32(x);
        break;
    case RPC_PARAM_LLONG:
    case RPC_PARAM_ULLONG:
        p->number = rpc_xdr_u64(x);
        break;
    case RPC_PARAM_STRING:
        p->text = rpc_xdr_bytes(x, RPC_CALL_MAX);
        break;
    default: /* no parameter of a move is a double */
        x->bad = true;
        break;
    }
}

static void read_params(struct rpc_xdr *x, struct rpc_migrate *ret)
{
    uint32_t n = rpc_xdr_u32(x);

    ret->n = 0;
    x->bad = x->bad || n > RPC_PARAMS_MAX;
    while (!x->bad && ret->n < n) {
        struct rpc_param *p = &ret->params[ret->n++];

        *p = (struct rpc_param){.name = rpc_xdr_bytes(x, RPC_NAME_MAX), .text = {"", 0}};
        p->type = rpc_xdr_u32(x);
        read_value(x, p);
    }
}

static void read_migrate(struct rpc_xdr *x, struct rpc_migrate *ret)
{
    read_params(x, ret);
    ret->cookie = rpc_xdr_bytes(x, RPC_CALL_MAX);
    ret->flags = rpc_xdr_u32(x);
}

bool rpc_call_prepare(struct rpc_xdr *x, struct rpc_migrate *ret)
{
    read_migrate(x, ret);
    return rpc_xdr_done(x);
}

bool rpc_call_finish(struct rpc_xdr *x, struct rpc_migrate *ret)
{
    read_migrate(x, ret);
    rpc_xdr_u32(x); /* cancelled */
    return rpc_xdr_done(x);
}
