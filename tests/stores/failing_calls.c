/* Lets one call of flock, fstat, statvfs or stat fail with EIO, once it was said which: for tests, by LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static int chosen = -1, left = 0, failed = 0;
static __thread int here = 0;

/* The call number `at` of a kind (0: flock, 1: fstat, 2: statvfs, 3: stat) of this thread fails; gives whether the last one did. */
int fail_call(int kind, int at) {
    int before = failed;
    chosen = kind, left = at, failed = 0, here = 1;
    return before;
}

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
