/** System call numbers of one architecture. */
interface Architecture {
  /** AUDIT_ARCH_* of linux/audit.h. */
  readonly audit: number;
  readonly clone: number;
  readonly socket: number;
  readonly ioctl: number;
  readonly personality: number;
  readonly denied: Readonly<Record<string, number>>;
  /** System call numbers from here on belong to another interface of the same machine (x32). */
  readonly foreignFrom: number | null;
}

/** Newer system calls have the same number on every architecture. */
const deniedEverywhere = {
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  pidfd_getfd: 438,
  process_madvise: 440,
  mount_setattr: 442,
  quotactl_fd: 443,
  memfd_secret: 447,
  set_mempolicy_home_node: 450,
  statmount: 457,
  listmount: 458,
  lsm_get_self_attr: 459,
  lsm_set_self_attr: 460,
  lsm_list_modules: 461,
};
/** `mseal`, of Linux 6.10: the last system call that was reviewed. */
const lastKnown = 462;
const clone3 = 435;

const architectures: Readonly<Partial<Record<NodeJS.Architecture, Architecture>>> = {
  x64: {
    audit: 0xc000003e,
    clone: 56,
    socket: 41,
    ioctl: 16,
    personality: 135,
    foreignFrom: 0x40000000,
    denied: {
      syslog: 103,
      uselib: 134,
      ustat: 136,
      sysfs: 139,
      vhangup: 153,
      modify_ldt: 154,
      pivot_root: 155,
      _sysctl: 156,
      chroot: 161,
      acct: 163,
      settimeofday: 164,
      mount: 165,
      umount2: 166,
      swapon: 167,
      swapoff: 168,
      reboot: 169,
      sethostname: 170,
      setdomainname: 171,
      iopl: 172,
      ioperm: 173,
      init_module: 175,
      delete_module: 176,
      quotactl: 179,
      nfsservctl: 180,
      lookup_dcookie: 212,
      clock_settime: 227,
      mbind: 237,
      set_mempolicy: 238,
      get_mempolicy: 239,
      kexec_load: 246,
      add_key: 248,
      request_key: 249,
      keyctl: 250,
      migrate_pages: 256,
      unshare: 272,
      move_pages: 279,
      perf_event_open: 298,
      fanotify_init: 300,
      name_to_handle_at: 303,
      open_by_handle_at: 304,
      setns: 308,
      kcmp: 312,
      finit_module: 313,
      kexec_file_load: 320,
      bpf: 321,
      userfaultfd: 323,
    },
  },
  arm64: {
    audit: 0xc00000b7,
    clone: 220,
    socket: 198,
    ioctl: 29,
    personality: 92,
    foreignFrom: null,
    denied: {
      lookup_dcookie: 18,
      umount2: 39,
      mount: 40,
      pivot_root: 41,
      nfsservctl: 42,
      chroot: 51,
      vhangup: 58,
      quotactl: 60,
      acct: 89,
      unshare: 97,
      kexec_load: 104,
      init_module: 105,
      delete_module: 106,
      clock_settime: 112,
      syslog: 116,
      reboot: 142,
      sethostname: 161,
      setdomainname: 162,
      settimeofday: 170,
      add_key: 217,
      request_key: 218,
      keyctl: 219,
      swapon: 224,
      swapoff: 225,
      mbind: 235,
      get_mempolicy: 236,
      set_mempolicy: 237,
      migrate_pages: 238,
      move_pages: 239,
      perf_event_open: 241,
      fanotify_init: 262,
      name_to_handle_at: 264,
      open_by_handle_at: 265,
      setns: 268,
      kcmp: 272,
      finit_module: 273,
      bpf: 280,
      userfaultfd: 282,
      kexec_file_load: 294,
    },
  },
};

// linux/bpf_common.h and linux/seccomp.h
const load = 0x20; // BPF_LD | BPF_W | BPF_ABS
const jumpIfEqual = 0x15;
const jumpIfGreaterOrEqual = 0x35;
const jumpIfAnySet = 0x45;
const answer = 0x06;
const allow = 0x7fff0000;
const refuse = 0x00050000;
const notPermitted = 1;
const notImplemented = 38;
const familyNotSupported = 97;

const atNumber = 0;
const atArchitecture = 4;
/** Offset of an argument's low half: every value that is checked fits into it. */
const atArgument = (index: number): number => 16 + index * 8;

const newNamespaces = 0x7e020000; // CLONE_NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET
const families = [1, 2, 10, 16]; // unix, IPv4, IPv6, netlink
const typeIntoTerminal = [0x5412, 0x541c]; // TIOCSTI, TIOCLINUX

/** Linux with or without its own names, and the query of the present value (personality(2)). */
const personalities = [0, 0x8, 0x20000, 0x20008, 0xffffffff];

/** One BPF instruction; a jump skips `then` or `otherwise` instructions. */
type Instruction = readonly [code: number, then: number, otherwise: number, value: number];

/**
 * A seccomp filter (seccomp(2), https://docs.kernel.org/userspace-api/seccomp_filter.html) in the format of
 * bubblewrap's `--seccomp`; null if the architecture's system call numbers are not in the table.
 * Refuses known system calls that no build, test or agent needs and that lead out of the namespaces: mounts, kernel
 * keys, new namespaces, io_uring (which bypasses such filters), BPF, memory that the kernel itself can't read, other
 * processes' descriptors, sockets of other families than unix, IP and netlink (AF_VSOCK leads out of `--unshare-net`),
 * and typing into a terminal. Answers ENOSYS to system calls newer than the last one reviewed, as an older kernel does,
 * so that each is allowed by decision.
 * Refuses what Docker's default profile (https://docs.docker.com/engine/security/seccomp/) refuses to a container
 * without capabilities, and also modify_ldt, memfd_secret and name_to_handle_at. Allows debuggers (ptrace,
 * process_vm_readv) and aio: gdb and databases use them.
 */
export function seccompFilter(architecture: NodeJS.Architecture): Buffer | null {
  const known = architectures[architecture];
  if (known === undefined) return null;
  const program: Instruction[] = [
    [load, 0, 0, atArchitecture],
    [jumpIfEqual, 1, 0, known.audit],
    // A 32-bit program on a 64-bit kernel uses other numbers.
    [answer, 0, 0, refuse | notPermitted],
    [load, 0, 0, atNumber],
    ...(known.foreignFrom === null ? [] : refuseIf(jumpIfGreaterOrEqual, known.foreignFrom, notPermitted)),
    ...refuseIf(jumpIfGreaterOrEqual, lastKnown + 1, notImplemented),
    ...[...Object.values(deniedEverywhere), ...Object.values(known.denied)].flatMap((number) =>
      refuseIf(jumpIfEqual, number, notPermitted),
    ),
    // Its flags are behind a pointer, which a filter can't read: the C library falls back to clone.
    ...refuseIf(jumpIfEqual, clone3, notImplemented),
    ...forCall(known.clone, [[load, 0, 0, atArgument(0)], ...refuseIf(jumpIfAnySet, newNamespaces, notPermitted)]),
    ...forCall(known.ioctl, [
      [load, 0, 0, atArgument(1)],
      ...typeIntoTerminal.flatMap((command) => refuseIf(jumpIfEqual, command, notPermitted)),
    ]),
    ...forCall(known.socket, onlyIf(0, families, familyNotSupported)),
    ...forCall(known.personality, onlyIf(0, personalities, notPermitted)),
    [answer, 0, 0, allow],
  ];
  const bytes = Buffer.alloc(program.length * 8);
  for (const [index, [code, then, otherwise, value]] of program.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(then, index * 8 + 2);
    bytes.writeUInt8(otherwise, index * 8 + 3);
    bytes.writeUInt32LE(value >>> 0, index * 8 + 4);
  }
  return bytes;
}

function refuseIf(jump: number, value: number, error: number): Instruction[] {
  return [
    [jump, 0, 1, value],
    [answer, 0, 0, refuse | error],
  ];
}

/** Allows a call if an argument has one of these values, else refuses it. */
function onlyIf(argument: number, values: readonly number[], error: number): Instruction[] {
  return [
    [load, 0, 0, atArgument(argument)],
    ...values.flatMap((value): Instruction[] => [
      [jumpIfEqual, 0, 1, value],
      [answer, 0, 0, allow],
    ]),
    [answer, 0, 0, refuse | error],
  ];
}

/** Runs the body for one system call only, then allows it; the number stays loaded for the instructions after. */
function forCall(number: number, body: readonly Instruction[]): Instruction[] {
  return [[jumpIfEqual, 0, body.length + 1, number], ...body, [answer, 0, 0, allow]];
}

/** Docker's names of architectures (https://docs.docker.com/engine/security/seccomp/). */
const architectureNames: Readonly<Partial<Record<NodeJS.Architecture, readonly string[]>>> = {
  x64: ["SCMP_ARCH_X86_64"],
  arm64: ["SCMP_ARCH_AARCH64"],
};

/**
 * The same filter as a JSON profile for a container engine; null if the architecture's numbers are not in the table:
 * keep the engine's default.
 */
export function seccompProfile(architecture: NodeJS.Architecture): string | null {
  const known = architectures[architecture];
  if (known === undefined) return null;
  const deny = (names: readonly string[], errnoRet: number, args: readonly object[] = []) => ({
    names,
    action: "SCMP_ACT_ERRNO",
    errnoRet,
    ...(args.length > 0 && { args }),
  });
  const equal = (index: number, value: number) => ({ index, value, op: "SCMP_CMP_EQ" });
  // The kernel reads only the low half of a command: a comparison of all bits could be bypassed.
  const lowHalf = (index: number, valueTwo: number) => ({
    index,
    value: 0xffffffff,
    valueTwo,
    op: "SCMP_CMP_MASKED_EQ",
  });
  const namespaceFlags = Array.from({ length: 32 }, (_, bit) => 2 ** bit).filter((bit) => (newNamespaces & bit) !== 0);
  const highest = Math.max(...families);
  const otherFamilies = Array.from({ length: highest }, (_, family) => family).filter(
    (family) => !families.includes(family),
  );
  // The question has the highest bit too; of the rest these are no value that is allowed.
  const question = 2 ** 31;
  const personalityFlags = Array.from({ length: 31 }, (_, bit) => 2 ** bit).filter(
    (bit) => !personalities.some((value) => value < question && (value & bit) !== 0),
  );
  return JSON.stringify({
    defaultAction: "SCMP_ACT_ALLOW",
    architectures: architectureNames[architecture],
    syscalls: [
      deny([...Object.keys(deniedEverywhere), ...Object.keys(known.denied)], notPermitted),
      deny(["clone3"], notImplemented),
      ...namespaceFlags.map((bit) =>
        deny(["clone"], notPermitted, [{ index: 0, value: bit, valueTwo: bit, op: "SCMP_CMP_MASKED_EQ" }]),
      ),
      ...typeIntoTerminal.map((command) => deny(["ioctl"], notPermitted, [lowHalf(1, command)])),
      ...personalityFlags.map((valueTwo) =>
        deny(["personality"], notPermitted, [
          { index: 0, value: question + valueTwo, valueTwo, op: "SCMP_CMP_MASKED_EQ" },
        ]),
      ),
      ...otherFamilies.map((family) => deny(["socket"], familyNotSupported, [equal(0, family)])),
      deny(["socket"], familyNotSupported, [{ index: 0, value: highest, op: "SCMP_CMP_GT" }]),
    ],
  });
}
