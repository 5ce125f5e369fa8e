/* Lets one call of the system fail, as `fail_call` chooses it: for tests, by LD_PRELOAD. */
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
#include <sys/uio.h>
#include <unistd.h>

static int chosen = -1, left = 0, failed = 0, number = EIO;
static __thread int here = 0;

/* The call number `at` of a kind (as CALLS in failing_writes.py numbers them) of this thread fails with `error`; gives
   whether the last one did. */
int fail_call(int kind, int at, int error) {
    int before = failed;
    chosen = kind, left = at, failed = 0, here = 1, number = error;
    return before;
}

static int fails(int kind) {
    if (here && kind == chosen && left > 0 && --left == 0) {
        failed = 1;
        errno = number;
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

ssize_t write(int file, const void *data, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    return fails(4) ? -1 : real(file, data, size);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwrite");
    return fails(5) ? -1 : real(file, data, size, at);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
    return fails(5) ? -1 : real(file, data, size, at);
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) {
    static ssize_t (*real)(int, const struct iovec *, int, off_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwritev");
    return fails(5) ? -1 : real(file, parts, count, at);
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t at) {
    static ssize_t (*real)(int, const struct iovec *, int, off64_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwritev64");
    return fails(5) ? -1 : real(file, parts, count, at);
}

ssize_t pwritev2(int file, const struct iovec *parts, int count, off_t at, int flags) {
    static ssize_t (*real)(int, const struct iovec *, int, off_t, int);
    if (!real) real = dlsym(RTLD_NEXT, "pwritev2");
    return fails(5) ? -1 : real(file, parts, count, at, flags);
}

ssize_t pwritev64v2(int file, const struct iovec *parts, int count, off64_t at, int flags) {
    static ssize_t (*real)(int, const struct iovec *, int, off64_t, int);
    if (!real) real = dlsym(RTLD_NEXT, "pwritev64v2");
    return fails(5) ? -1 : real(file, parts, count, at, flags);
}

int ftruncate(int file, off_t size) {
    static int (*real)(int, off_t);
    if (!real) real = dlsym(RTLD_NEXT, "ftruncate");
    return fails(6) ? -1 : real(file, size);
}

int ftruncate64(int file, off64_t size) {
    static int (*real)(int, off64_t);
    if (!real) real = dlsym(RTLD_NEXT, "ftruncate64");
    return fails(6) ? -1 : real(file, size);
}

int rename(const char *old, const char *new) {
    static int (*real)(const char *, const char *);
    if (!real) real = dlsym(RTLD_NEXT, "rename");
    return fails(7) ? -1 : real(old, new);
}

int renameat(int from, const char *old, int to, const char *new) {
    static int (*real)(int, const char *, int, const char *);
    if (!real) real = dlsym(RTLD_NEXT, "renameat");
    return fails(7) ? -1 : real(from, old, to, new);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned int flags) {
    static int (*real)(int, const char *, int, const char *, unsigned int);
    if (!real) real = dlsym(RTLD_NEXT, "renameat2");
    return fails(7) ? -1 : real(from, old, to, new, flags);
}

int link(const char *old, const char *new) {
    static int (*real)(const char *, const char *);
    if (!real) real = dlsym(RTLD_NEXT, "link");
    return fails(8) ? -1 : real(old, new);
}

int linkat(int from, const char *old, int to, const char *new, int flags) {
    static int (*real)(int, const char *, int, const char *, int);
    if (!real) real = dlsym(RTLD_NEXT, "linkat");
    return fails(8) ? -1 : real(from, old, to, new, flags);
}

int unlink(const char *path) {
    static int (*real)(const char *);
    if (!real) real = dlsym(RTLD_NEXT, "unlink");
    return fails(9) ? -1 : real(path);
}

int unlinkat(int above, const char *path, int flags) {
    static int (*real)(int, const char *, int);
    if (!real) real = dlsym(RTLD_NEXT, "unlinkat");
    return fails(9) ? -1 : real(above, path, flags);
}

int mkdir(const char *path, mode_t mode) {
    static int (*real)(const char *, mode_t);
    if (!real) real = dlsym(RTLD_NEXT, "mkdir");
    return fails(10) ? -1 : real(path, mode);
}

int mkdirat(int above, const char *path, mode_t mode) {
    static int (*real)(int, const char *, mode_t);
    if (!real) real = dlsym(RTLD_NEXT, "mkdirat");
    return fails(10) ? -1 : real(above, path, mode);
}

int fsync(int file) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fsync");
    return fails(11) ? -1 : real(file);
}

ssize_t copy_file_range(int source, off64_t *from, int target, off64_t *to, size_t size, unsigned int flags) {
    static ssize_t (*real)(int, off64_t *, int, off64_t *, size_t, unsigned int);
    if (!real) real = dlsym(RTLD_NEXT, "copy_file_range");
    return fails(13) ? -1 : real(source, from, target, to, size, flags);
}

/* The file is closed, whatever the error says. */
int close(int file) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "close");
    int code = real(file);
    return fails(12) ? -1 : code;
}

int open(const char *path, int flags, ...) {
    static int (*real)(const char *, int, ...);
    if (!real) real = dlsym(RTLD_NEXT, "open");
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return flags & O_CREAT && fails(14) ? -1 : real(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    static int (*real)(const char *, int, ...);
    if (!real) real = dlsym(RTLD_NEXT, "open64");
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return flags & O_CREAT && fails(14) ? -1 : real(path, flags, mode);
}

int openat(int above, const char *path, int flags, ...) {
    static int (*real)(int, const char *, int, ...);
    if (!real) real = dlsym(RTLD_NEXT, "openat");
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return flags & O_CREAT && fails(14) ? -1 : real(above, path, flags, mode);
}

int openat64(int above, const char *path, int flags, ...) {
    static int (*real)(int, const char *, int, ...);
    if (!real) real = dlsym(RTLD_NEXT, "openat64");
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return flags & O_CREAT && fails(14) ? -1 : real(above, path, flags, mode);
}
