/* Lets calls of the system fail, once it was said which: for tests, by LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int chosen = -1, left = 0, failed = 0, count = 0, knows_noreplace = 1;
static __thread int here = 0;

/* The call number `at` of a kind (0: flock, 1: fstat, 2: statvfs, 3: stat) of this thread fails with EIO; kinds from 4 on are
 * below. Gives whether the last one did. */
int fail_call(int kind, int at) {
    int before = failed;
    chosen = kind, left = at, failed = count = 0, here = 1;
    return before;
}

/* Whether renames may be told to replace nothing, as on most local file systems. */
void know_noreplace(int known) { knows_noreplace = known; }

static int fails(int kind) {
    if (here && kind == chosen && left > 0 && --left == 0) {
        failed = 1;
        errno = EIO;
        return 1;
    }
    return 0;
}

int flock(int file, int operation) {
    static int (*real)(int, int);
    if (!real) real = dlsym(RTLD_NEXT, "flock");
    return fails(0) ? -1 : real(file, operation);
}

int fstat(int file, struct stat *status) {
    static int (*real)(int, struct stat *);
    if (!real) real = dlsym(RTLD_NEXT, "fstat");
    return fails(1) ? -1 : real(file, status);
}

int fstat64(int file, struct stat64 *status) {
    static int (*real)(int, struct stat64 *);
    if (!real) real = dlsym(RTLD_NEXT, "fstat64");
    return fails(1) ? -1 : real(file, status);
}

int fstatvfs(int file, struct statvfs *status) {
    static int (*real)(int, struct statvfs *);
    if (!real) real = dlsym(RTLD_NEXT, "fstatvfs");
    return fails(2) ? -1 : real(file, status);
}

int statvfs(const char *path, struct statvfs *status) {
    static int (*real)(const char *, struct statvfs *);
    if (!real) real = dlsym(RTLD_NEXT, "statvfs");
    return fails(2) ? -1 : real(path, status);
}

int stat(const char *path, struct stat *status) {
    static int (*real)(const char *, struct stat *);
    if (!real) real = dlsym(RTLD_NEXT, "stat");
    return fails(3) ? -1 : real(path, status);
}

int stat64(const char *path, struct stat64 *status) {
    static int (*real)(const char *, struct stat64 *);
    if (!real) real = dlsym(RTLD_NEXT, "stat64");
    return fails(3) ? -1 : real(path, status);
}

int lstat(const char *path, struct stat *status) {
    static int (*real)(const char *, struct stat *);
    if (!real) real = dlsym(RTLD_NEXT, "lstat");
    return fails(3) ? -1 : real(path, status);
}

int lstat64(const char *path, struct stat64 *status) {
    static int (*real)(const char *, struct stat64 *);
    if (!real) real = dlsym(RTLD_NEXT, "lstat64");
    return fails(3) ? -1 : real(path, status);
}

int fstatat(int above, const char *path, struct stat *status, int flags) {
    static int (*real)(int, const char *, struct stat *, int);
    if (!real) real = dlsym(RTLD_NEXT, "fstatat");
    return fails(3) ? -1 : real(above, path, status, flags);
}

int fstatat64(int above, const char *path, struct stat64 *status, int flags) {
    static int (*real)(int, const char *, struct stat64 *, int);
    if (!real) real = dlsym(RTLD_NEXT, "fstatat64");
    return fails(3) ? -1 : real(above, path, status, flags);
}

/* Network file systems. Kind 4: from the close number `at` of a file with new bytes on, in any thread, each fails with
 * EDQUOT, and the bytes are lost. Kinds 5 to 8: the call number `at`, in any thread, is done, and its answer is lost: the
 * client sends it again, and reports that the second one has failed (5: rename, 6: link, 7: unlink, rmdir, 8: mkdir).
 * Kind 9: pread gives half of what it is asked for. Kind 10: there are too many open files for open and dup, once. */

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct { dev_t device; ino_t inode; off_t size; } unaccepted[256];

static int number_of(const struct stat *status) {
    for (int i = 0; i < count; i++)
        if (unaccepted[i].device == status->st_dev && unaccepted[i].inode == status->st_ino) return i;
    return -1;
}

static int real_fstat(int file, struct stat *status) {
    return syscall(SYS_newfstatat, file, "", status, AT_EMPTY_PATH);
}

/* Bytes are about to be written to a file. */
static void writes(int file) {
    struct stat status;
    if (chosen != 4 || real_fstat(file, &status) || !S_ISREG(status.st_mode)) return;
    pthread_mutex_lock(&guard);
    if (number_of(&status) < 0 && count < 256) {
        unaccepted[count].device = status.st_dev;
        unaccepted[count].inode = status.st_ino;
        unaccepted[count++].size = status.st_size;
    }
    pthread_mutex_unlock(&guard);
}

int close(int file) {
    struct stat status;
    int refuses = 0;
    if (chosen == 4 && !real_fstat(file, &status)) {
        pthread_mutex_lock(&guard);
        int number = number_of(&status);
        if (number >= 0) {
            off_t size = unaccepted[number].size;
            unaccepted[number] = unaccepted[--count];
            if (left > 1) left--;
            else if (left == 1) {
                failed = refuses = 1;
                if (status.st_size > size) syscall(SYS_ftruncate, file, size);
            }
        }
        pthread_mutex_unlock(&guard);
    }
    int result = (int)syscall(SYS_close, file);
    if (refuses) errno = EDQUOT;
    return refuses ? -1 : result;
}

/* What the client says of a call whose answer may be lost. */
static int answered(int kind, int result, int error) {
    if (chosen != kind || result || left <= 0 || __sync_sub_and_fetch(&left, 1)) return result;
    failed = 1;
    errno = error;
    return -1;
}

#define WRITER(type, name, parameters, arguments) \
    type name parameters { \
        static type (*real) parameters; \
        if (!real) real = dlsym(RTLD_NEXT, #name); \
        writes(file); \
        return real arguments; \
    }

WRITER(ssize_t, write, (int file, const void *data, size_t size), (file, data, size))
WRITER(ssize_t, pwrite, (int file, const void *data, size_t size, off_t at), (file, data, size, at))
WRITER(ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t at), (file, data, size, at))
WRITER(ssize_t, pwritev, (int file, const struct iovec *data, int parts, off_t at), (file, data, parts, at))
WRITER(ssize_t, pwritev64, (int file, const struct iovec *data, int parts, off64_t at), (file, data, parts, at))
WRITER(ssize_t, copy_file_range, (int from, off64_t *at, int file, off64_t *to, size_t size, unsigned flags),
       (from, at, file, to, size, flags))

static int has_too_many(void) {
    if (chosen != 10 || left <= 0 || __sync_sub_and_fetch(&left, 1)) return 0;
    failed = 1;
    errno = EMFILE;
    return 1;
}

/* All calls below come here. */
long syscall(long number, ...) {
    static long (*real)(long, ...);
    if (!real) real = dlsym(RTLD_NEXT, "syscall");
    va_list rest;
    va_start(rest, number);
    long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long);
    long d = va_arg(rest, long), e = va_arg(rest, long), f = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_renameat2 && e && !knows_noreplace) {
        errno = EINVAL;
        return -1;
    }
    if ((number == SYS_openat || number == SYS_openat2) && has_too_many()) return -1;
    long result = real(number, a, b, c, d, e, f);
    if (number == SYS_renameat2) return answered(5, (int)result, e ? EEXIST : ENOENT);
    return result;
}

int rename(const char *old, const char *new) { return (int)syscall(SYS_renameat2, AT_FDCWD, old, AT_FDCWD, new, 0); }

int renameat(int above, const char *old, int below, const char *new) {
    return (int)syscall(SYS_renameat2, above, old, below, new, 0);
}

int linkat(int above, const char *old, int below, const char *new, int flags) {
    return answered(6, (int)syscall(SYS_linkat, above, old, below, new, flags), EEXIST);
}

int link(const char *old, const char *new) {
    return answered(6, (int)syscall(SYS_linkat, AT_FDCWD, old, AT_FDCWD, new, 0), EEXIST);
}

int unlinkat(int above, const char *path, int flags) {
    return answered(7, (int)syscall(SYS_unlinkat, above, path, flags), ENOENT);
}

int unlink(const char *path) {
    return answered(7, (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0), ENOENT);
}

int rmdir(const char *path) {
    return answered(7, (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR), ENOENT);
}

int mkdirat(int above, const char *path, mode_t mode) {
    return answered(8, (int)syscall(SYS_mkdirat, above, path, mode), EEXIST);
}

int mkdir(const char *path, mode_t mode) {
    return answered(8, (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode), EEXIST);
}

ssize_t pread64(int file, void *data, size_t size, off64_t at) {
    int is_short = chosen == 9 && size > 1 && left > 0 && !__sync_sub_and_fetch(&left, 1);
    if (is_short) failed = 1;
    return syscall(SYS_pread64, file, data, is_short ? size / 2 : size, at);
}

ssize_t pread(int file, void *data, size_t size, off_t at) { return pread64(file, data, size, at); }

#define OPENER(name, parameters, above, path) \
    int name parameters { \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = va_arg(rest, mode_t); \
        va_end(rest); \
        return (int)syscall(SYS_openat, above, path, flags, mode); \
    }

OPENER(openat, (int above, const char *path, int flags, ...), above, path)
OPENER(openat64, (int above, const char *path, int flags, ...), above, path)
OPENER(open, (const char *path, int flags, ...), AT_FDCWD, path)
OPENER(open64, (const char *path, int flags, ...), AT_FDCWD, path)

#define CONTROL(name) \
    int name(int file, int command, ...) { \
        va_list rest; \
        va_start(rest, command); \
        void *argument = va_arg(rest, void *); \
        va_end(rest); \
        if ((command == F_DUPFD_CLOEXEC || command == F_DUPFD) && has_too_many()) return -1; \
        return (int)syscall(SYS_fcntl, file, command, argument); \
    }

CONTROL(fcntl)
CONTROL(fcntl64)
