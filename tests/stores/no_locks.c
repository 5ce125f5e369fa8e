/* A file system without flock, or with a poorer one, for tests, by LD_PRELOAD. REFUSED is the error number; POOR says what
   cannot be locked: "all"; "read-only" (exclusively, by a file that was not opened for writing, as on NFS), "directories". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

static int is_directory(int file) {
    struct stat status;
    return fstat(file, &status) == 0 && S_ISDIR(status.st_mode);
}

int flock(int file, int operation) {
    static int (*real)(int, int);
    if (!real) real = dlsym(RTLD_NEXT, "flock");
    const char *poor = getenv("POOR"), *refused = getenv("REFUSED");
    int refuses = 0;
    if (!poor || !refused || operation & LOCK_UN) refuses = 0;
    else if (!strcmp(poor, "all")) refuses = 1;
    else if (!strcmp(poor, "directories")) refuses = is_directory(file);
    else if (!strcmp(poor, "read-only")) refuses = operation & LOCK_EX && (fcntl(file, F_GETFL) & O_ACCMODE) == O_RDONLY;
    if (!refuses) return real(file, operation);
    errno = atoi(refused);
    return -1;
}
