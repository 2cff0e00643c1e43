#include "tls/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "tls/conn.h"
#include "tls/gcm.h"
#include "tls/identity.h"
#include "tls/sslerr.h"

enum {
    MAX_PEM = 256 * 1024,
    MAX_PEER_CHAIN = 16 * 1024,
    MAX_DEPTH = 4,
};

enum which { CA, CERT, KEY, N_FILES };

/* What tells a changed file. Whole zero = not there. */
struct mark {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec mtime;
};

struct file {
    char *path;       /* for messages */
    const char *name; /* last part of it */
    int dirfd;
};

struct tls_credentials {
    struct file files[N_FILES]; /* immutable, as is `node` */
    char *node;
    bool client_only, server_only;
    struct tls_denials *denials; /* borrowed, or NULL; set once */
    pthread_mutex_t lock;        /* over what follows */
    SSL_CTX *ctx;
    struct mark seen[N_FILES]; /* at the last attempt to load, whether it worked or not */
};

FERRY_DEFINE_CLEANUP(SSL_CTX *, SSL_CTX_free)
FERRY_DEFINE_CLEANUP(BIO *, BIO_free_all)
FERRY_DEFINE_CLEANUP(X509 *, X509_free)
FERRY_DEFINE_CLEANUP(EVP_PKEY *, EVP_PKEY_free)
FERRY_DEFINE_CLEANUP(struct tls_credentials *, tls_credentials_free)

static void secret_done(struct ferry_buf *b)
{
    if (b->data) {
        OPENSSL_cleanse(b->data, b->cap);
    }
    ferry_buf_done(b);
}

/* ---- files ------------------------------------------------------------------------------------
 */

static int open_directory(struct file *f, const char *path, struct ferry_error *err)
{
    const char *slash = strrchr(path, '/');
    ferry_cleanup_free char *dir = slash ? ferry_strndup(path, (size_t)(slash - path) + 1) : NULL;

    f->path = ferry_strdup(path);
    f->name = slash ? f->path + (slash - path) + 1 : f->path;
    f->dirfd = open(dir ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return f->dirfd < 0 ? ferry_fail_errno(err, errno, "opening the directory of %s", path) : 0;
}

static struct mark look(const struct file *f)
{
    struct stat st;

    if (fstatat(f->dirfd, f->name, &st, 0) < 0) {
        return (struct mark){0};
    }
    return (struct mark){
        .dev = st.st_dev, .ino = st.st_ino, .size = st.st_size, .mtime = st.st_mtim};
}

static bool same_mark(const struct mark *a, const struct mark *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           a->mtime.tv_sec == b->mtime.tv_sec && a->mtime.tv_nsec == b->mtime.tv_nsec;
}

static bool files_changed(const struct tls_credentials *c)
{
    for (int i = 0; i < N_FILES; i++) {
        struct mark now = look(&c->files[i]);

        if (!same_mark(&now, &c->seen[i])) {
            return true;
        }
    }
    return false;
}

static int read_file(const struct file *f, struct ferry_buf *ret, struct ferry_error *err)
{
    ferry_cleanup_fd int fd = openat(f->dirfd, f->name, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        return ferry_fail_errno(err, errno, "reading %s", f->path);
    }
    if (!S_ISREG(st.st_mode) || st.st_size > MAX_PEM) {
        return ferry_fail(err, FERRY_INVALID, "reading %s: not a file of at most %d bytes", f->path,
                          MAX_PEM);
    }
    ferry_buf_reserve(ret, (size_t)st.st_size + 1); /* in one piece: a key leaves no copies */
    for (;;) {
        ssize_t n = read(fd, ret->data + ret->len, ret->cap - ret->len - 1);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return ferry_fail_errno(err, errno, "reading %s", f->path);
        }
        ret->len += (size_t)n;
        ret->data[ret->len] = '\0';
        if (n == 0 || ret->len + 1 == ret->cap) {
            return 0;
        }
    }
}

/* ---- contexts ---------------------------------------------------------------------------------
 */

static int use_ca(SSL_CTX *ctx, const char *pem, const char *path, struct ferry_error *err)
{
    ferry_cleanup(BIO_free_allp) BIO *bio = BIO_new_mem_buf(pem, -1);
    int n = 0;

    for (;; n++) {
        ferry_cleanup(X509_freep) X509 *x = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;

        if (!x) {
            break;
        }
        /* What OpenSSL derives from a certificate when it first needs it: now, by one thread, not
         * by all that verify against it at once. */
        (void)X509_check_purpose(x, -1, 0);
        if (!X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), x)) {
            return sslerr_fail(err, FERRY_INVALID, "using the CA in %s", path);
        }
    }
    return n > 0 ? 0 : sslerr_fail(err, FERRY_INVALID, "%s holds no certificate", path);
}

static int use_cert(SSL_CTX *ctx, const char *pem, const char *path, struct ferry_error *err)
{
    ferry_cleanup(BIO_free_allp) BIO *bio = BIO_new_mem_buf(pem, -1);
    ferry_cleanup(X509_freep) X509 *leaf = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;

    if (!leaf || SSL_CTX_use_certificate(ctx, leaf) != 1) {
        return sslerr_fail(err, FERRY_INVALID, "%s holds no usable certificate", path);
    }
    for (;;) { /* intermediates */
        X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);

        if (!x) {
            return 0;
        }
        if (SSL_CTX_add0_chain_cert(ctx, x) != 1) {
            X509_free(x);
            return sslerr_fail(err, FERRY_INVALID, "using the chain in %s", path);
        }
    }
}

static int use_key(SSL_CTX *ctx, const char *pem, const struct file *files, struct ferry_error *err)
{
    ferry_cleanup(BIO_free_allp) BIO *bio = BIO_new_mem_buf(pem, -1);
    ferry_cleanup(EVP_PKEY_freep) EVP_PKEY *key =
        bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)(uintptr_t) "") : NULL;

    if (!key) {
        return sslerr_fail(err, FERRY_INVALID, "%s holds no private key", files[KEY].path);
    }
    if (SSL_CTX_use_PrivateKey(ctx, key) != 1 || SSL_CTX_check_private_key(ctx) != 1) {
        return sslerr_fail(err, FERRY_INVALID, "%s and %s do not belong together", files[CERT].path,
                           files[KEY].path);
    }
    return 0;
}

static SSL_CTX *make_context(void)
{
    ferry_cleanup(SSL_CTX_freep) SSL_CTX *ctx =
        SSL_CTX_new_ex(NULL, tls_gcm_properties(), TLS_method());

    if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) ||
        !SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) ||
        /* AES-128 first: the cheapest per byte wherever the CPU has AES. */
        !SSL_CTX_set_ciphersuites(
            ctx, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256") ||
        !SSL_CTX_set_num_tickets(ctx, 0)) {
        return NULL;
    }
    /* No resumption: every connection proves its identity with a certificate. */
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_max_cert_list(ctx, MAX_PEER_CHAIN);
    SSL_CTX_set_verify_depth(ctx, MAX_DEPTH);
    tls_conn_prepare(ctx);
    return ferry_take_ptr(ctx);
}

/* A certificate for another node would be refused by every peer: better said here. */
static int check_own(const struct tls_credentials *c, SSL_CTX *ctx, struct ferry_error *err)
{
    const X509 *own = SSL_CTX_get0_certificate(ctx);

    const struct tls_name name = {.node = c->node};

    for (enum tls_role role = TLS_CLIENT; c->node && role <= TLS_SERVER; role++) {
        bool used = role == TLS_CLIENT ? !c->server_only : !c->client_only;
        enum tls_refusal why = used ? tls_identity_check(own, role, &name) : TLS_ACCEPTED;

        if (why != TLS_ACCEPTED) {
            tls_identity_refuse(err, why, own, role, &name);
            return ferry_wrap(err, "%s", c->files[CERT].path);
        }
    }
    return 0;
}

static int load_locked(struct tls_credentials *c, struct ferry_error *err)
{
    ferry_cleanup(SSL_CTX_freep) SSL_CTX *ctx = make_context();
    ferry_cleanup_buf struct ferry_buf ca = {0}, cert = {0};
    ferry_cleanup(secret_done) struct ferry_buf key = {0};
    struct ferry_buf *const texts[N_FILES] = {[CA] = &ca, [CERT] = &cert, [KEY] = &key};
    int rc;

    if (!ctx) {
        return sslerr_fail(err, FERRY_FATAL, "making a TLS context");
    }
    /* Before reading: a change in between shows at the next look. */
    for (int i = 0; i < N_FILES; i++) {
        c->seen[i] = look(&c->files[i]);
    }
    for (int i = 0; i < N_FILES; i++) {
        if ((rc = read_file(&c->files[i], texts[i], err)) < 0) {
            return rc;
        }
    }
    if ((rc = use_ca(ctx, ca.data, c->files[CA].path, err)) < 0 ||
        (rc = use_cert(ctx, cert.data, c->files[CERT].path, err)) < 0 ||
        (rc = use_key(ctx, key.data, c->files, err)) < 0 || (rc = check_own(c, ctx, err)) < 0) {
        return rc;
    }
    ERR_clear_error(); /* reading past the last certificate of a file leaves an entry */
    SSL_CTX_free(c->ctx);
    c->ctx = ferry_take_ptr(ctx);
    return 0;
}

/* ---- the object -------------------------------------------------------------------------------
 */

int tls_credentials_new(const struct tls_credentials_files *files, struct tls_credentials **ret,
                        struct ferry_error *err)
{
    const char *const paths[N_FILES] = {[CA] = files->ca, [CERT] = files->cert, [KEY] = files->key};
    ferry_cleanup(tls_credentials_freep) struct tls_credentials *c = ferry_xcalloc(1, sizeof(*c));

    pthread_mutex_init(&c->lock, NULL);
    c->node = ferry_strdup(files->node);
    c->client_only = files->client_only;
    c->server_only = files->server_only;
    for (int i = 0; i < N_FILES; i++) {
        c->files[i].dirfd = -1;
    }
    for (int i = 0; i < N_FILES; i++) {
        int rc = open_directory(&c->files[i], paths[i], err);

        if (rc < 0) {
            return rc;
        }
    }
    *ret = ferry_take_ptr(c);
    return 0;
}

void tls_credentials_free(struct tls_credentials *c)
{
    if (!c) {
        return;
    }
    for (int i = 0; i < N_FILES; i++) {
        ferry_closep(&c->files[i].dirfd);
        free(c->files[i].path);
    }
    free(c->node);
    SSL_CTX_free(c->ctx);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

int tls_credentials_load(struct tls_credentials *c, struct ferry_error *err)
{
    pthread_mutex_lock(&c->lock);
    int rc = load_locked(c, err);
    pthread_mutex_unlock(&c->lock);
    return rc;
}

void tls_credentials_deny(struct tls_credentials *c, struct tls_denials *denials)
{
    c->denials = denials;
}

struct tls_denials *tls_credentials_denials(const struct tls_credentials *c)
{
    return c->denials;
}

int tls_credentials_context(struct tls_credentials *c, SSL_CTX **ret, struct ferry_error *err)
{
    struct ferry_error why;
    int rc = 0;

    pthread_mutex_lock(&c->lock);
    if (!c->ctx || files_changed(c)) {
        bool first = !c->ctx;

        rc = load_locked(c, &why);
        if (rc == 0 && !first) {
            ferry_info("credentials reloaded", F_STR("certificate", c->files[CERT].path));
        } else if (rc < 0 && c->ctx) {
            ferry_warn("credentials on disk changed and are invalid; the previous ones stay in use",
                       F_ERR(&why));
            rc = 0;
        }
    }
    if (rc == 0) {
        SSL_CTX_up_ref(c->ctx);
        *ret = c->ctx;
    } else if (err) {
        *err = why;
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}
