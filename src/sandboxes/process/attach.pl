# Makes folders of the machine visible in a sandbox that runs already, with the flags that bubblewrap gives its mounts (nosuid,
# nodev). Needs root, and the system calls open_tree, move_mount and mount_setattr (Linux 5.12). The sandbox's root folder is
# writable, for root alone, while the places are made.
# Arguments: the number of the system call setns; the id of the sandbox's first process; its home folder, as the machine and as
# the sandbox sees it; then for each folder `ro` or `rw`, the folder, and its place in the sandbox.
use strict;

# Numbers of calls are the same on all architectures since 5.1 (man 2 syscalls).
my ($openTree, $moveMount, $mountSetattr) = (428, 429, 442);
my ($readOnly, $noSetuid, $noDevices, $private, $newMounts) = (1, 2, 4, 1 << 18, 0x20000);
my ($clone, $closeOnExec, $recursive, $emptyPath, $fromEmptyPath, $here) = (1, 02000000, 0x8000, 0x1000, 4, -100);

my ($setns, $pid, $homeOutside, $homeInside, @rest) = @ARGV;
my $nothing = '';
my $root = '/';

my @mounts;
while (my ($kind, $folder, $place) = splice @rest, 0, 3) {
  my $mount = syscall($openTree, $here, $folder, $clone | $closeOnExec | $recursive);
  fail("can't take $folder") if $mount < 0;
  setFlags($mount, $nothing, $emptyPath | $recursive, $noSetuid | $noDevices | ($kind eq 'ro' ? $readOnly : 0), 0, $private);
  push @mounts, [$mount, $place];
}
my $home = join ':', (stat $homeOutside)[0, 1];
open(my $namespace, '<', "/proc/$pid/ns/mnt") or fail("the sandbox is gone");
syscall($setns, fileno $namespace, $newMounts) == 0 or fail("can't enter the sandbox");
# Whatever the process id says: this is the sandbox that has this home, and no other.
$home eq join(':', (lstat $homeInside)[0, 1]) or die "this is not the sandbox with the home $homeInside\n";

setFlags($here, $root, 0, 0, $readOnly, 0);
for (@mounts) {
  my ($mount, $place) = @$_;
  my $path = '';
  for my $part (grep { $_ ne '' } split m{/}, $place) {
    $path .= "/$part";
    # Nothing that a program inside made leads elsewhere.
    die "$path is a link\n" if -l $path;
    -d $path or mkdir($path, 0755) or fail("can't make $path");
  }
  syscall($moveMount, $mount, $nothing, $here, $place, $fromEmptyPath) == 0 or fail("can't show $place");
}
setFlags($here, $root, 0, $readOnly, 0, 0);

sub setFlags {
  my ($mount, $path, $how, $set, $clear, $propagation) = @_;
  my $attributes = pack('Q4', $set, $clear, $propagation, 0);
  syscall($mountSetattr, $mount, $path, $how, $attributes, length $attributes) == 0 or fail("can't set a mount's flags");
}

sub fail { die "$_[0]: $!\n" }
