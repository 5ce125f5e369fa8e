/* A file system without locks, or with poorer ones, for tests, by LD_PRELOAD. REFUSED is the error number; POOR says what
   cannot be locked: "all"; "flock" (byte ranges can); "read-only" (exclusively, by a file that was not opened for writing,
   as on NFS), "directories". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

static int is_directory(int file) {
    struct stat status;
    return fstat(file, &status) == 0 && S_ISDIR(status.st_mode);
}

static int refuses_lock(int file, int alone) {
    const char *poor = getenv("POOR"), *refused = getenv("REFUSED");
    int refuses = 0;
    if (!poor || !refused) return 0;
    if (!strcmp(poor, "all") || !strcmp(poor, "flock")) refuses = 1;
    else if (!strcmp(poor, "directories")) refuses = is_directory(file);
    else if (!strcmp(poor, "read-only")) refuses = alone && (fcntl(file, F_GETFL) & O_ACCMODE) == O_RDONLY;
    if (refuses) errno = atoi(refused);
    return refuses;
}

int flock(int file, int operation) {
    static int (*real)(int, int);
    if (!real) real = dlsym(RTLD_NEXT, "flock");
    const char *poor = getenv("POOR");
    int unlocks = operation & LOCK_UN && !(poor && !strcmp(poor, "flock"));
    if (!unlocks && refuses_lock(file, operation & LOCK_EX)) return -1;
    return real(file, operation);
}

/* glibc's name for fcntl where offsets have 64 bits */
int fcntl64(int file, int command, ...) {
    static int (*real)(int, int, ...);
    if (!real) real = dlsym(RTLD_NEXT, "fcntl64");
    va_list given;
    va_start(given, command);
    void *argument = va_arg(given, void *);
    va_end(given);
    const char *poor = getenv("POOR");
    int locks = command == F_OFD_SETLK || command == F_OFD_SETLKW;
    if (locks && !(poor && !strcmp(poor, "flock")) && refuses_lock(file, ((struct flock *)argument)->l_type == F_WRLCK)) return -1;
    return real(file, command, argument);
}
