/* Lets one call of flock, fstat or statvfs fail with EIO, once it was said which: for tests, by LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static int chosen = -1, left = 0, failed = 0;
static __thread int here = 0;

/* The call number `at` of a kind (0: flock, 1: fstat, 2: statvfs) of this thread fails; gives whether the last one did. */
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
