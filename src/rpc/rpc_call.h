/* Arguments of the calls that a move makes (libvirt's src/remote/remote_protocol.x). Pure; texts
 * point into the message. */
#pragma once

#include "rpc/rpc_frame.h"
#include "rpc/rpc_xdr.h"

enum rpc_procedure {
    RPC_CONNECT_OPEN = 1,
    RPC_CONNECT_CLOSE = 2,
    RPC_CONNECT_GET_CAPABILITIES = 7,
    RPC_CONNECT_SUPPORTS_FEATURE = 60,
    RPC_AUTH_LIST = 66,
    RPC_DOMAIN_MIGRATE_PREPARE3_PARAMS = 303,
    RPC_DOMAIN_MIGRATE_FINISH3_PARAMS = 306,
    RPC_CONNECT_REGISTER_CLOSE_CALLBACK = 360,
    RPC_CONNECT_UNREGISTER_CLOSE_CALLBACK = 361,
    RPC_CONNECT_COMPARE_HYPERVISOR_CPU = 393,
};

enum { RPC_PARAMS_MAX = 64, RPC_NAME_MAX = 80, RPC_STRING_MAX = 4096 };

/* Of a typed parameter, as in libvirt/libvirt-common.h. */
enum rpc_param_type {
    RPC_PARAM_INT = 1,
    RPC_PARAM_UINT,
    RPC_PARAM_LLONG,
    RPC_PARAM_ULLONG,
    RPC_PARAM_DOUBLE,
    RPC_PARAM_BOOLEAN,
    RPC_PARAM_STRING,
};

struct rpc_param {
    struct rpc_text name;
    uint32_t type;
    struct rpc_text text; /* of a string */
    uint64_t number;      /* of all others but doubles */
};

/* DOMAIN_MIGRATE_PREPARE3_PARAMS and DOMAIN_MIGRATE_FINISH3_PARAMS. */
struct rpc_migrate {
    struct rpc_param params[RPC_PARAMS_MAX];
    size_t n;
    struct rpc_text cookie;
    uint32_t flags;
};

struct rpc_open {
    bool named;
    struct rpc_text name;
    uint32_t flags;
};

struct rpc_compare_cpu {
    bool has_emulator;
    struct rpc_text emulator;
};

/* False when the payload is not what the procedure takes, in length or in content. */
bool rpc_call_nothing(struct rpc_xdr *x);
bool rpc_call_open(struct rpc_xdr *x, struct rpc_open *ret);
bool rpc_call_feature(struct rpc_xdr *x, int32_t *ret);
bool rpc_call_compare_cpu(struct rpc_xdr *x, struct rpc_compare_cpu *ret);
bool rpc_call_prepare(struct rpc_xdr *x, struct rpc_migrate *ret);
bool rpc_call_finish(struct rpc_xdr *x, struct rpc_migrate *ret);
