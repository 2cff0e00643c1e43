/* Whose a site's files are. The server is no root; what root does on them by hand, or did before
 * there was a user for the server, must not leave a file that the server cannot use. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/user.h"

/* Of the database, else of the CA, else of DATA; root where there is none of them. */
void site_owner(const char *data, struct ferry_user *ret);

/* Makes DATA and all of the server's files in it belong to `to`, those that root left, too: DATA
 * stays root's, for it may be a node's as well, and `to` may make files in it. The controller's
 * kubeconfig is for group `controller` to read. As root; what somebody else may have put there is
 * left alone. */
int site_give(const char *data, const struct ferry_user *to, gid_t controller,
              struct ferry_error *err);

/* For whoever is not root: a refusal that says whose the site is, where it is another's. */
int site_check_user(const char *data, struct ferry_error *err);

/* Whether `file` lies in DATA itself. */
bool site_holds(const char *data, const char *file);
