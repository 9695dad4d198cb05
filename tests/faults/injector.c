/* Counts the calls that change files below one folder, and lets the n-th of them go wrong.
 *
 * Loaded with LD_PRELOAD. It sleeps until a process names itself in the control block, which lies in memory that
 * forked children share with their parent: what was counted can be read after a child was killed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define ENTRIES 65536
#define PATH_BYTES 232

enum { CREATE, OPEN, WRITE, TRUNCATE, SYNC, CLOSE, RENAME, LINK, MKDIR, REMOVE, ATTRIBUTE };
enum { NOTHING, FAIL_ONCE, FAIL_ON, KILL_BEFORE, KILL_AFTER, CUT, SHORT };

struct entry {
    int op, faulted;
    long bytes;
    char path[PATH_BYTES];
};

struct control {
    int pid;       /* the process that is watched */
    int kind;      /* what goes wrong */
    int error;     /* errno of calls that fail */
    unsigned mask; /* calls that can fail so: bit 1 << op */
    int halved;    /* whether a write that fails first is cut short, as a disk that fills up does */
    int hit;       /* whether the n-th call came */
    long number;   /* n, from 1 */
    long count;    /* calls so far */
    char folder[PATH_MAX];
    struct entry entries[ENTRIES];
};

struct verdict {
    int fail, half, last;
};

static struct control *control;

/* ---- the functions behind ours ---- */

typedef void *(*dlsym_t)(void *, const char *);
static dlsym_t real_dlsym;

static dlsym_t find_dlsym(void) {
    static const char *versions[] = {"GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.34", "GLIBC_2.27", "GLIBC_2.0"};
    for (unsigned i = 0; i < sizeof versions / sizeof *versions; i++) {
        void *found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        if (found)
            return (dlsym_t)found;
    }
    return 0;
}

/* The real function of a name, looked up once. */
#define REAL(name)                                                         \
    static __typeof__(name) *real;                                         \
    if (!real) {                                                           \
        if (!real_dlsym)                                                   \
            real_dlsym = find_dlsym();                                     \
        real = (__typeof__(name) *)real_dlsym(RTLD_NEXT, #name);           \
    }

/* ---- what is watched ---- */

__attribute__((constructor)) static void begin(void) {
    void *shared = mmap(0, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    control = shared == MAP_FAILED ? 0 : shared;
}

struct control *fault_control(void) { return control; }

static int watching(void) { return control && control->pid && control->pid == getpid(); }

static int below(const char *path) {
    size_t length = strlen(control->folder);
    return length && !strncmp(path, control->folder, length) && (path[length] == '/' || !path[length]);
}

/* Path of an open file; empty where it has none. */
static const char *path_of(int fd, char *into) {
    char link[48];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, into, PATH_MAX - 1);
    into[length > 0 ? length : 0] = 0;
    char *removed = strstr(into, " (deleted)"); /* what has no name any more changes no folder */
    if (removed && !removed[sizeof " (deleted)" - 1])
        into[0] = 0;
    return into;
}

/* Absolute path of a name; without looking at links, so that a link counts where it lies. */
static const char *absolute(int folder, const char *name, char *into) {
    char base[PATH_MAX];
    if (!name)
        name = "";
    if (*name == '/') {
        snprintf(into, PATH_MAX, "%s", name);
        return into;
    }
    if (folder != AT_FDCWD)
        path_of(folder, base);
    else if (!getcwd(base, sizeof base))
        base[0] = 0;
    if (snprintf(into, PATH_MAX, "%s/%s", base, name) >= PATH_MAX)
        into[0] = 0;
    return into;
}

static int there(const char *path) {
    struct stat found;
    return !lstat(path, &found);
}

/* ---- what goes wrong ---- */

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static void note(long n, int op, const char *path, long bytes, int faulted) {
    if (n > ENTRIES)
        return;
    struct entry *entry = &control->entries[n - 1];
    const char *name = path + strlen(control->folder);
    entry->op = op;
    entry->bytes = bytes;
    entry->faulted = faulted;
    snprintf(entry->path, PATH_BYTES, "%s", *name == '/' ? name + 1 : name);
}

static struct verdict judged(int op, const char *path, long bytes) {
    struct verdict verdict = {0, 0, 0};
    if (!watching() || !below(path))
        return verdict;
    long n = __atomic_add_fetch(&control->count, 1, __ATOMIC_SEQ_CST);
    int now = n == control->number, later = control->number && n > control->number;
    int able = control->mask >> op & 1, halves = op == WRITE && bytes > 1;
    switch (control->kind) {
    case FAIL_ONCE:
        verdict.fail = now && able;
        break;
    case FAIL_ON:
        verdict.half = now && able && halves && control->halved;
        verdict.fail = (now || later) && able && !verdict.half;
        break;
    case KILL_BEFORE:
        if (now) {
            note(n, op, path, bytes, 1);
            control->hit = 1;
            die();
        }
        break;
    case KILL_AFTER:
        verdict.last = now;
        break;
    case CUT:
        verdict.half = now && halves;
        verdict.last = now;
        break;
    case SHORT:
        verdict.half = now && halves;
        break;
    }
    if (now)
        control->hit = 1;
    note(n, op, path, bytes, verdict.fail || verdict.half || verdict.last);
    return verdict;
}

static void end(struct verdict verdict) {
    if (verdict.last)
        die();
}

/* A call on a path: judged, then made. */
#define ON_PATH(op, path, call)                          \
    do {                                                 \
        struct verdict verdict = judged(op, path, 0);    \
        if (verdict.fail) {                              \
            errno = control->error;                      \
            return -1;                                   \
        }                                                \
        __typeof__(call) result = call;                  \
        end(verdict);                                    \
        return result;                                   \
    } while (0)

/* A call on an open file that is watched where it was opened for writing. */
#define ON_FILE(op, fd, size, whole, half_size, halved_call)                         \
    do {                                                                             \
        int before = errno;                                                          \
        char path[PATH_MAX];                                                         \
        if (!watching())                                                             \
            return whole;                                                            \
        path_of(fd, path);                                                           \
        errno = before;                                                              \
        struct verdict verdict = judged(op, path, size);                             \
        if (verdict.fail) {                                                          \
            errno = control->error;                                                  \
            return -1;                                                               \
        }                                                                            \
        __typeof__(whole) result = verdict.half ? (halved_call) : (whole);           \
        end(verdict);                                                                \
        return result;                                                               \
    } while (0)

/* ---- opening ---- */

static int changing(int flags) { return (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC); }

/* The verdict on opening; an open that would fail by itself, or changes nothing, is not counted. */
static struct verdict opening(int folder, const char *name, int flags, int *watched) {
    struct verdict verdict = {0, 0, 0};
    char path[PATH_MAX];
    int before = errno;
    *watched = 0;
    if (!watching() || !changing(flags))
        return verdict;
    absolute(folder, name, path);
    int exists = there(path);
    errno = before;
    int doomed = exists ? (flags & O_CREAT && flags & O_EXCL) : !(flags & O_CREAT);
    if ((flags & O_TMPFILE) == O_TMPFILE)
        exists = doomed = 0;
    if (doomed)
        return verdict;
    *watched = 1;
    return judged(exists ? OPEN : CREATE, path, 0);
}

#define OPENING(folder, name, flags, call)                                    \
    do {                                                                      \
        int watched;                                                          \
        struct verdict verdict = opening(folder, name, flags, &watched);      \
        if (verdict.fail) {                                                   \
            errno = control->error;                                           \
            return -1;                                                        \
        }                                                                     \
        int result = call;                                                    \
        end(verdict);                                                         \
        return result;                                                        \
    } while (0)

#define MODE(flags)                                                      \
    mode_t mode = 0;                                                     \
    if (flags & (O_CREAT | O_TMPFILE)) {                                 \
        va_list rest;                                                    \
        va_start(rest, flags);                                           \
        mode = va_arg(rest, mode_t);                                     \
        va_end(rest);                                                    \
    }

int open(const char *name, int flags, ...) {
    REAL(open) MODE(flags) OPENING(AT_FDCWD, name, flags, real(name, flags, mode));
}
int open64(const char *name, int flags, ...) {
    REAL(open64) MODE(flags) OPENING(AT_FDCWD, name, flags, real(name, flags, mode));
}
int openat(int folder, const char *name, int flags, ...) {
    REAL(openat) MODE(flags) OPENING(folder, name, flags, real(folder, name, flags, mode));
}
int openat64(int folder, const char *name, int flags, ...) {
    REAL(openat64) MODE(flags) OPENING(folder, name, flags, real(folder, name, flags, mode));
}
int creat(const char *name, mode_t mode) {
    REAL(creat) OPENING(AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC, real(name, mode));
}
int creat64(const char *name, mode_t mode) {
    REAL(creat64) OPENING(AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC, real(name, mode));
}

static int flags_of(const char *mode) {
    int flags = strchr(mode, '+') ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;
    return flags | (*mode == 'r' ? 0 : O_CREAT) | (*mode == 'w' ? O_TRUNC : 0);
}

#define STREAM_OPENING(name, mode, call)                                               \
    do {                                                                               \
        int watched;                                                                   \
        struct verdict verdict = opening(AT_FDCWD, name, flags_of(mode), &watched);    \
        if (verdict.fail) {                                                            \
            errno = control->error;                                                    \
            return 0;                                                                  \
        }                                                                              \
        FILE *result = call;                                                           \
        end(verdict);                                                                  \
        return result;                                                                 \
    } while (0)

FILE *fopen(const char *name, const char *mode) { REAL(fopen) STREAM_OPENING(name, mode, real(name, mode)); }
FILE *fopen64(const char *name, const char *mode) { REAL(fopen64) STREAM_OPENING(name, mode, real(name, mode)); }

/* ---- writing ---- */

ssize_t write(int fd, const void *from, size_t size) {
    REAL(write) ON_FILE(WRITE, fd, size, real(fd, from, size), 0, real(fd, from, size / 2));
}
ssize_t pwrite(int fd, const void *from, size_t size, off_t at) {
    REAL(pwrite) ON_FILE(WRITE, fd, size, real(fd, from, size, at), 0, real(fd, from, size / 2, at));
}
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) {
    REAL(pwrite64) ON_FILE(WRITE, fd, size, real(fd, from, size, at), 0, real(fd, from, size / 2, at));
}

static long total(const struct iovec *parts, int n) {
    long bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += parts[i].iov_len;
    return bytes;
}

/* Half of what many parts hold: half of the first that is not empty. */
static struct iovec half_of(const struct iovec *parts, int n) {
    struct iovec half = {0, 0};
    for (int i = 0; i < n && !half.iov_len; i++)
        half = (struct iovec){parts[i].iov_base, parts[i].iov_len > 1 ? parts[i].iov_len / 2 : parts[i].iov_len};
    return half;
}

ssize_t writev(int fd, const struct iovec *parts, int n) {
    REAL(writev)
    struct iovec half = half_of(parts, n);
    ON_FILE(WRITE, fd, total(parts, n), real(fd, parts, n), 0, real(fd, &half, 1));
}
ssize_t pwritev(int fd, const struct iovec *parts, int n, off_t at) {
    REAL(pwritev)
    struct iovec half = half_of(parts, n);
    ON_FILE(WRITE, fd, total(parts, n), real(fd, parts, n, at), 0, real(fd, &half, 1, at));
}
ssize_t pwritev64(int fd, const struct iovec *parts, int n, off64_t at) {
    REAL(pwritev64)
    struct iovec half = half_of(parts, n);
    ON_FILE(WRITE, fd, total(parts, n), real(fd, parts, n, at), 0, real(fd, &half, 1, at));
}
ssize_t sendfile(int to, int from, off_t *at, size_t size) {
    REAL(sendfile) ON_FILE(WRITE, to, size, real(to, from, at, size), 0, real(to, from, at, size / 2));
}
ssize_t sendfile64(int to, int from, off64_t *at, size_t size) {
    REAL(sendfile64) ON_FILE(WRITE, to, size, real(to, from, at, size), 0, real(to, from, at, size / 2));
}
ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *there_at, size_t size, unsigned flags) {
    REAL(copy_file_range)
    ON_FILE(WRITE, to, size, real(from, at, to, there_at, size, flags), 0,
            real(from, at, to, there_at, size / 2, flags));
}

/* The C library's streams write behind our back, so that what they are given is pushed out at once. */
size_t fwrite(const void *from, size_t size, size_t n, FILE *stream) {
    REAL(fwrite)
    char path[PATH_MAX];
    if (!watching() || !size || !n || !below(path_of(fileno(stream), path)))
        return real(from, size, n, stream);
    struct verdict verdict = judged(WRITE, path, size * n);
    if (verdict.fail) {
        errno = control->error;
        return 0;
    }
    size_t written = verdict.half ? real(from, 1, size * n / 2, stream) / size : real(from, size, n, stream);
    fflush(stream);
    if (verdict.half)
        errno = control->error;
    end(verdict);
    return written;
}
int fclose(FILE *stream) {
    REAL(fclose)
    char path[PATH_MAX];
    int fd = fileno(stream), before = errno;
    if (!watching() || fd < 0 || (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
        return real(stream);
    path_of(fd, path);
    errno = before;
    struct verdict verdict = judged(CLOSE, path, 0);
    int result = real(stream);
    end(verdict);
    if (!verdict.fail)
        return result;
    errno = control->error;
    return EOF;
}

/* ---- open files otherwise ---- */

int ftruncate(int fd, off_t size) { REAL(ftruncate) ON_FILE(TRUNCATE, fd, size, real(fd, size), 0, 0); }
int ftruncate64(int fd, off64_t size) { REAL(ftruncate64) ON_FILE(TRUNCATE, fd, size, real(fd, size), 0, 0); }
int fallocate(int fd, int mode, off_t at, off_t size) {
    REAL(fallocate) ON_FILE(TRUNCATE, fd, size, real(fd, mode, at, size), 0, 0);
}
/* Nothing is pushed to the disk: no power is cut here, and it would take most of the time. */
static int synced(int fd, int (*real)(int)) {
    char path[PATH_MAX];
    if (!watching() || !below(path_of(fd, path)))
        return real(fd);
    ON_FILE(SYNC, fd, 0, 0, 0, 0);
}
int fsync(int fd) { REAL(fsync) return synced(fd, real); }
int fdatasync(int fd) { REAL(fdatasync) return synced(fd, real); }
int fchmod(int fd, mode_t mode) { REAL(fchmod) ON_FILE(ATTRIBUTE, fd, 0, real(fd, mode), 0, 0); }
int futimens(int fd, const struct timespec times[2]) {
    REAL(futimens) ON_FILE(ATTRIBUTE, fd, 0, real(fd, times), 0, 0);
}

/* Closing always closes, whatever it says: so does Linux. */
int close(int fd) {
    REAL(close)
    char path[PATH_MAX];
    int before = errno;
    if (!watching() || (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) {
        errno = before;
        return real(fd);
    }
    path_of(fd, path);
    errno = before;
    struct verdict verdict = judged(CLOSE, path, 0);
    int result = real(fd);
    end(verdict);
    if (!verdict.fail)
        return result;
    errno = control->error;
    return -1;
}

/* ---- names ---- */

/* A path that is watched; what the call would refuse by itself, however the disk is, is not counted. */
#define NAMED(op, folder, name, doomed, call)                    \
    do {                                                         \
        char path[PATH_MAX];                                     \
        int before = errno;                                      \
        if (!watching())                                         \
            return call;                                         \
        absolute(folder, name, path);                            \
        int useless = doomed;                                    \
        errno = before;                                          \
        if (useless)                                             \
            return call;                                         \
        ON_PATH(op, path, call);                                 \
    } while (0)

/* Two paths of which either may be watched; the new one is noted. */
#define MOVED(op, from_folder, from, to_folder, to, flags, call)                                        \
    do {                                                                                                \
        char old[PATH_MAX], new[PATH_MAX];                                                              \
        int before = errno;                                                                             \
        if (!watching())                                                                                \
            return call;                                                                                \
        absolute(from_folder, from, old);                                                               \
        absolute(to_folder, to, new);                                                                   \
        int useless = !there(old) || ((flags) && there(new));                                           \
        errno = before;                                                                                 \
        if (useless)                                                                                    \
            return call;                                                                                \
        ON_PATH(op, below(new) ? new : old, call);                                                      \
    } while (0)

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

int rename(const char *from, const char *to) {
    REAL(rename) MOVED(RENAME, AT_FDCWD, from, AT_FDCWD, to, 0, real(from, to));
}
int renameat(int a, const char *from, int b, const char *to) {
    REAL(renameat) MOVED(RENAME, a, from, b, to, 0, real(a, from, b, to));
}
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    REAL(renameat2) MOVED(RENAME, a, from, b, to, flags & RENAME_NOREPLACE, real(a, from, b, to, flags));
}
int link(const char *from, const char *to) {
    REAL(link) MOVED(LINK, AT_FDCWD, from, AT_FDCWD, to, 1, real(from, to));
}
int linkat(int a, const char *from, int b, const char *to, int flags) {
    REAL(linkat) MOVED(LINK, a, from, b, to, 1, real(a, from, b, to, flags));
}
int symlink(const char *target, const char *name) {
    REAL(symlink) NAMED(LINK, AT_FDCWD, name, there(path), real(target, name));
}
int symlinkat(const char *target, int folder, const char *name) {
    REAL(symlinkat) NAMED(LINK, folder, name, there(path), real(target, folder, name));
}
int mkdir(const char *name, mode_t mode) {
    REAL(mkdir) NAMED(MKDIR, AT_FDCWD, name, there(path), real(name, mode));
}
int mkdirat(int folder, const char *name, mode_t mode) {
    REAL(mkdirat) NAMED(MKDIR, folder, name, there(path), real(folder, name, mode));
}
int unlink(const char *name) { REAL(unlink) NAMED(REMOVE, AT_FDCWD, name, !there(path), real(name)); }
int unlinkat(int folder, const char *name, int flags) {
    REAL(unlinkat) NAMED(REMOVE, folder, name, !there(path), real(folder, name, flags));
}
int rmdir(const char *name) { REAL(rmdir) NAMED(REMOVE, AT_FDCWD, name, !there(path), real(name)); }
int remove(const char *name) { REAL(remove) NAMED(REMOVE, AT_FDCWD, name, !there(path), real(name)); }
int truncate(const char *name, off_t size) {
    REAL(truncate) NAMED(TRUNCATE, AT_FDCWD, name, !there(path), real(name, size));
}
int truncate64(const char *name, off64_t size) {
    REAL(truncate64) NAMED(TRUNCATE, AT_FDCWD, name, !there(path), real(name, size));
}
int chmod(const char *name, mode_t mode) { REAL(chmod) NAMED(ATTRIBUTE, AT_FDCWD, name, !there(path), real(name, mode)); }
int fchmodat(int folder, const char *name, mode_t mode, int flags) {
    REAL(fchmodat) NAMED(ATTRIBUTE, folder, name, !there(path), real(folder, name, mode, flags));
}
int utimensat(int folder, const char *name, const struct timespec times[2], int flags) {
    REAL(utimensat) NAMED(ATTRIBUTE, folder, name, !there(path), real(folder, name, times, flags));
}

/* ---- calls by number, and functions that are looked up in the C library itself (as ctypes does) ---- */

long syscall(long number, ...) {
    REAL(syscall)
    va_list rest;
    long a[6];
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    if (watching()) {
        if (number == SYS_renameat2)
            return renameat2(a[0], (const char *)a[1], a[2], (const char *)a[3], a[4]);
        if (number == SYS_renameat)
            return renameat(a[0], (const char *)a[1], a[2], (const char *)a[3]);
        if (number == SYS_unlinkat)
            return unlinkat(a[0], (const char *)a[1], a[2]);
        if (number == SYS_fsync)
            return fsync(a[0]);
        if (number == SYS_copy_file_range)
            return copy_file_range(a[0], (off64_t *)a[1], a[2], (off64_t *)a[3], a[4], a[5]);
    }
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static const struct {
    const char *name;
    void *ours;
} OURS[] = {
    {"renameat2", renameat2}, {"rename", rename}, {"renameat", renameat}, {"syscall", syscall}, {"write", write},
    {"unlink", unlink}, {"fsync", fsync}, {"link", link}, {"mkdir", mkdir}, {"rmdir", rmdir}, {"fallocate", fallocate},
};

void *dlsym(void *library, const char *name) {
    if (!real_dlsym)
        real_dlsym = find_dlsym();
    for (unsigned i = 0; library != RTLD_NEXT && i < sizeof OURS / sizeof *OURS; i++)
        if (!strcmp(name, OURS[i].name) && real_dlsym(library, name) == real_dlsym(RTLD_NEXT, name))
            return OURS[i].ours;
    return real_dlsym(library, name);
}
