/*
 * The system-call filter of jobs and file workers: everything is allowed but a list of what reaches
 * for other namespaces, kernel-wide state or rarely tested kernel code. Numbers
 * that this list could not know answer ENOSYS, so that programs fall back.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/filter.h"


/* From this number on a call is newer than the list. The numbers are common to all
 * architectures since 424; 450 is set_mempolicy_home_node. */
#define TGD_FILTER_FIRST_UNKNOWN  451
#define TGD_FILTER_CODE_MAX       4096
#define TGD_FILTER_HEAD           5

#define TGD_CLONE_NEW  \
    (CLONE_NEWUSER|CLONE_NEWNS|CLONE_NEWPID|CLONE_NEWNET|CLONE_NEWIPC|CLONE_NEWUTS  \
     |CLONE_NEWCGROUP|0x00000080 /* CLONE_NEWTIME */)

#ifndef SOCK_PACKET
#define SOCK_PACKET  10
#endif

#define TGD_SOCK_TYPE  0xF

static const int  denied[] = {
    /* mounts and namespaces */
    SCMP_SYS(mount), SCMP_SYS(umount), SCMP_SYS(umount2), SCMP_SYS(pivot_root),
    SCMP_SYS(chroot), SCMP_SYS(setns), SCMP_SYS(unshare), SCMP_SYS(fsopen),
    SCMP_SYS(fsconfig), SCMP_SYS(fsmount), SCMP_SYS(fspick), SCMP_SYS(open_tree),
    SCMP_SYS(move_mount), SCMP_SYS(mount_setattr),
    /* other processes */
    SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev),
    SCMP_SYS(kcmp), SCMP_SYS(pidfd_getfd), SCMP_SYS(process_madvise),
    SCMP_SYS(process_mrelease), SCMP_SYS(move_pages), SCMP_SYS(migrate_pages),
    /* kernel-wide state */
    SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(delete_module),
    SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load), SCMP_SYS(reboot),
    SCMP_SYS(swapon), SCMP_SYS(swapoff), SCMP_SYS(syslog), SCMP_SYS(acct),
    SCMP_SYS(quotactl), SCMP_SYS(quotactl_fd), SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime), SCMP_SYS(clock_adjtime), SCMP_SYS(adjtimex),
    SCMP_SYS(stime), SCMP_SYS(sethostname), SCMP_SYS(setdomainname),
    SCMP_SYS(vhangup), SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(nfsservctl),
    SCMP_SYS(_sysctl), SCMP_SYS(sysfs), SCMP_SYS(uselib), SCMP_SYS(ustat),
    SCMP_SYS(lookup_dcookie), SCMP_SYS(modify_ldt),
    /* much kernel code for little use */
    SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd),
    SCMP_SYS(keyctl), SCMP_SYS(add_key), SCMP_SYS(request_key),
    SCMP_SYS(fanotify_init), SCMP_SYS(name_to_handle_at),
    SCMP_SYS(open_by_handle_at), SCMP_SYS(vmsplice), SCMP_SYS(mbind),
    SCMP_SYS(set_mempolicy), SCMP_SYS(set_mempolicy_home_node),
    SCMP_SYS(memfd_secret),
};

/* glibc and node fall back on ENOSYS, but not on EPERM; flags of clone3 and modes
 * of openat2 lie in memory where no filter can read them */
static const int  absent[] = {
    SCMP_SYS(clone3), SCMP_SYS(openat2), SCMP_SYS(io_uring_setup),
    SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register),
};


static int
deny_lists(scmp_filter_ctx ctx, tgd_filter_e kind)
{
    size_t  i;

    for (i = 0; i < sizeof(denied) / sizeof(denied[0]); i++) {
        /* a negative number is a call that this architecture has not */
        if (denied[i] >= 0
            && seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), denied[i], 0) != 0)
        {
            return -1;
        }
    }

    for (i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
        if (kind == TGD_FILTER_FILES && absent[i] == SCMP_SYS(openat2)) {
            continue;
        }
        if (seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), absent[i], 0) != 0) {
            return -1;
        }
    }

    return 0;
}


/* a set bit of mask in an argument denies the call */
static int
deny_bits(scmp_filter_ctx ctx, int call, unsigned arg, uint64_t mask)
{
    int       rc;
    uint64_t  bit;

    rc = 0;
    for (bit = 1; bit <= mask && rc == 0; bit <<= 1) {
        if (mask & bit) {
            rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), call, 1,
                                  SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, bit, bit));
        }
    }

    return rc;
}


/* no set-uid or set-gid file in a workspace, where the host could run it */
static int
deny_modes(scmp_filter_ctx ctx)
{
    int       rc;
    uint64_t  bit, create;

    rc = deny_bits(ctx, SCMP_SYS(fchmod), 1, S_ISUID|S_ISGID);
    rc |= deny_bits(ctx, SCMP_SYS(fchmodat), 2, S_ISUID|S_ISGID);
    rc |= deny_bits(ctx, SCMP_SYS(mknodat), 2, S_ISUID|S_ISGID);

    if (SCMP_SYS(chmod) >= 0) {
        rc |= deny_bits(ctx, SCMP_SYS(chmod), 1, S_ISUID|S_ISGID);
        rc |= deny_bits(ctx, SCMP_SYS(creat), 1, S_ISUID|S_ISGID);
        rc |= deny_bits(ctx, SCMP_SYS(mknod), 1, S_ISUID|S_ISGID);
    }

    /* without O_CREAT the mode is not an argument at all */
    create = O_CREAT;
    for (bit = S_ISGID; bit <= S_ISUID; bit <<= 1) {
        rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(openat), 2,
                               SCMP_CMP(2, SCMP_CMP_MASKED_EQ, create, create),
                               SCMP_CMP(3, SCMP_CMP_MASKED_EQ, bit, bit));
        if (SCMP_SYS(open) >= 0) {
            rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(open), 2,
                                   SCMP_CMP(1, SCMP_CMP_MASKED_EQ, create, create),
                                   SCMP_CMP(2, SCMP_CMP_MASKED_EQ, bit, bit));
        }
    }

    return rc;
}


static int
deny_sockets(scmp_filter_ctx ctx, tgd_filter_e kind)
{
    int           rc;
    unsigned      family;
    const uint32_t  refuse = SCMP_ACT_ERRNO(EAFNOSUPPORT);

    if (kind == TGD_FILTER_FILES) {
        return seccomp_rule_add(ctx, refuse, SCMP_SYS(socket), 0);
    }

    /* only unix, IPv4 and IPv6 */
    rc = seccomp_rule_add(ctx, refuse, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, 0));
    for (family = AF_UNIX + 1; family < AF_INET6; family++) {
        if (family != AF_INET) {
            rc |= seccomp_rule_add(ctx, refuse, SCMP_SYS(socket), 1,
                                   SCMP_A0(SCMP_CMP_EQ, family));
        }
    }
    rc |= seccomp_rule_add(ctx, refuse, SCMP_SYS(socket), 1,
                           SCMP_A0(SCMP_CMP_GT, AF_INET6));

    rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
                           SCMP_A1(SCMP_CMP_MASKED_EQ, TGD_SOCK_TYPE, SOCK_RAW));
    rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
                           SCMP_A1(SCMP_CMP_MASKED_EQ, TGD_SOCK_TYPE, SOCK_PACKET));

    return rc;
}


static int
deny_arguments(scmp_filter_ctx ctx, tgd_filter_e kind)
{
    int       rc;
    uint64_t  low32;

    low32 = UINT32_MAX;

    rc = deny_bits(ctx, SCMP_SYS(clone), 0, TGD_CLONE_NEW);
    rc |= deny_modes(ctx);
    rc |= deny_sockets(ctx, kind);

    /* typing into a terminal: the kernel looks at 32 bits of the request */
    rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                           SCMP_A1(SCMP_CMP_MASKED_EQ, low32, TIOCSTI));
    rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                           SCMP_A1(SCMP_CMP_MASKED_EQ, low32, TIOCLINUX));

    /* limits of another process: the supervisor has the same uid */
    rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64), 1,
                           SCMP_A0(SCMP_CMP_NE, 0));

    /* other execution domains */
    rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(personality), 1,
                           SCMP_A0(SCMP_CMP_NE, 0));

    return rc;
}


/* the program that libseccomp writes, behind our own test for unknown numbers */
static int
filter_export(scmp_filter_ctx ctx, tgd_filter_t *filter)
{
    int                 fd;
    off_t               size;
    unsigned short      n;
    struct sock_filter  head[TGD_FILTER_HEAD] = {
        BPF_STMT(BPF_LD|BPF_W|BPF_ABS, offsetof(struct seccomp_data, arch)),
        /* a foreign architecture goes to libseccomp's own check, which kills */
        BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K, 0, 0, 3),
        BPF_STMT(BPF_LD|BPF_W|BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP|BPF_JGE|BPF_K, TGD_FILTER_FIRST_UNKNOWN, 0, 1),
        BPF_STMT(BPF_RET|BPF_K, SECCOMP_RET_ERRNO|ENOSYS),
    };

    head[1].k = seccomp_arch_native();

    fd = memfd_create("filter", MFD_CLOEXEC);
    if (fd == -1) {
        return -1;
    }

    if (seccomp_export_bpf(ctx, fd) != 0
        || (size = lseek(fd, 0, SEEK_CUR)) <= 0
        || (size_t) size / sizeof(struct sock_filter) > TGD_FILTER_CODE_MAX)
    {
        (void) close(fd);
        return -1;
    }

    n = (unsigned short) ((size_t) size / sizeof(struct sock_filter));
    filter->code = calloc((size_t) n + TGD_FILTER_HEAD, sizeof(struct sock_filter));

    if (filter->code == NULL
        || pread(fd, filter->code + TGD_FILTER_HEAD, (size_t) size, 0) != size)
    {
        free(filter->code);
        filter->code = NULL;
        (void) close(fd);
        return -1;
    }

    memcpy(filter->code, head, sizeof(head));
    filter->len = (unsigned short) (n + TGD_FILTER_HEAD);
    (void) close(fd);

    return 0;
}


int
tgd_filter_build(tgd_filter_t *filter, tgd_filter_e kind)
{
    int              rc;
    scmp_filter_ctx  ctx;

    filter->code = NULL;
    filter->len = 0;

    ctx = seccomp_init(SCMP_ACT_ALLOW);
    if (ctx == NULL) {
        return -1;
    }

    rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    /* a balanced tree of numbers instead of a list; older libraries have it not */
    (void) seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);

    rc |= deny_lists(ctx, kind);
    rc |= deny_arguments(ctx, kind);

    if (rc == 0) {
        rc = filter_export(ctx, filter);
    }

    seccomp_release(ctx);

    return rc == 0 ? 0 : -1;
}


int
tgd_filter_apply(const tgd_filter_t *filter)
{
    struct sock_fprog  program;

    program.len = filter->len;
    program.filter = filter->code;

    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
