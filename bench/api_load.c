/* api_load KUBECONFIG create|patch|get CLIENTS SECONDS COUNT PREFIX: calls on VMIs from CLIENTS
 * threads, each with a connection of its own, until SECONDS are over or COUNT calls are done.
 * Prints the number of calls and the seconds they took. Names are PREFIX-THREAD-NUMBER; patch and
 * get use number 0. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "http/client.h"
#include "kube/client.h"

#define VMIS "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"
enum { MAX_CLIENTS = 64 };

static const char *kubeconfig, *verb, *prefix;
static int64_t end_ns;
static long most;
static atomic_long done, failed;

static void make_call(int thread, long i, struct http_call *call, char **path, char **body)
{
    if (strcmp(verb, "create") == 0) {
        *path = ferry_strdup(VMIS);
        *body =
            ferry_asprintf("{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":\"VirtualMachineInstance\","
                           "\"metadata\":{\"name\":\"%s-%d-%ld\",\"labels\":{\"app\":\"bench\"}},"
                           "\"spec\":{\"domain\":{\"cpu\":{\"cores\":2},\"memory\":{\"guest\":"
                           "\"64Mi\"},\"devices\":{}},\"terminationGracePeriodSeconds\":5}}",
                           prefix, thread, i);
        *call = (struct http_call){.method = "POST", .content_type = "application/json"};
    } else {
        *path = ferry_asprintf(VMIS "/%s-%d-0", prefix, thread);
        *body = ferry_asprintf("{\"status\":{\"phase\":\"Running\",\"nodeName\":\"n%ld\"}}", i);
        *call = (struct http_call){.method = "GET"};
    }
    if (strcmp(verb, "patch") == 0) {
        call->method = "PATCH";
        call->content_type = "application/merge-patch+json";
    }
    call->path = *path;
    call->body = strcmp(call->method, "GET") == 0 ? NULL : *body;
    call->body_len = call->body ? strlen(call->body) : 0;
}

static void *run(void *arg)
{
    int thread = (int)(intptr_t)arg;
    kube_cleanup_client struct kube_client *client = NULL;
    struct ferry_error err;

    if (kube_client_open(kubeconfig, &client, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        atomic_fetch_add(&failed, 1);
        return NULL;
    }
    for (long i = 0; ferry_now_ns() < end_ns; i++) {
        http_cleanup_reply struct http_reply reply = {0};
        ferry_cleanup_free char *path = NULL, *body = NULL;
        struct http_call call;

        if (atomic_fetch_add(&done, 1) >= most) {
            atomic_fetch_sub(&done, 1);
            break;
        }
        make_call(thread, i, &call, &path, &body);
        if (http_client_call(kube_client_http(client), &call, &reply, &err) < 0 ||
            reply.status >= 300) {
            fprintf(stderr, "%s %s: %d %.300s\n", call.method, path, reply.status,
                    reply.body.data ? reply.body.data : err.msg);
            atomic_fetch_add(&failed, 1);
            break;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[MAX_CLIENTS];

    if (argc != 7 || atoi(argv[3]) < 1 || atoi(argv[3]) > MAX_CLIENTS) {
        fprintf(stderr,
                "usage: api_load KUBECONFIG create|patch|get CLIENTS SECONDS COUNT PREFIX\n");
        return 2;
    }
    kubeconfig = argv[1];
    verb = argv[2];
    prefix = argv[6];
    most = atol(argv[5]);
    int clients = atoi(argv[3]);
    int64_t begin = ferry_now_ns();
    end_ns = begin + atol(argv[4]) * FERRY_NS_PER_S;
    for (int i = 0; i < clients; i++) {
        if (pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i) != 0) {
            return 1;
        }
    }
    for (int i = 0; i < clients; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%ld %.3f\n", atomic_load(&done), (double)(ferry_now_ns() - begin) / 1e9);
    return atomic_load(&failed) ? 1 : 0;
}
