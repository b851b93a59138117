# Mounts an overlay (https://docs.kernel.org/filesystems/overlayfs.html) at the folder `workspace` of a place: what is changed there
# comes into the folder `changes` beside it, whose owner all files of the layers below appear to have. Each layer is seen through
# a read-only mount of its own that maps root, who owns its files, to that owner (idmapped mount, mount_setattr(2)): nothing is
# copied or changed. It needs Linux 5.19 and root, and runs outside of any sandbox.
#
# All is put together in a mount namespace of its own, and only the overlay is moved out of it: a process that is killed here leaves
# nothing behind. Neither Node nor mount(8) of util-linux before 2.39 has these system calls.
#
# Arguments: the place, which has the folders `workspace`, `changes` and `overlay` (overlayfs's own) on one file system; the layers,
# the topmost first
use strict;
use warnings;
use POSIX ();

my ($place, @layers) = @ARGV;
# Numbers of system calls: those up to 424 differ between processors, the later ones do not.
my %numbers = (x86_64 => [272, 308, 165], aarch64 => [97, 268, 40]);
my $machine = (POSIX::uname())[4];
my ($unshare, $setns, $mount) = @{$numbers{$machine} // die "no system calls are known for $machine\n"};
my ($open_tree, $move_mount, $mount_setattr) = (428, 429, 442);
my ($user_namespace, $mount_namespace) = (0x10000000, 0x00020000);
my $here = -100;    # AT_FDCWD

# Makes a system call. Texts among the parameters are copied, since the kernel could change them.
sub call {
    my ($what, $number, @parameters) = @_;
    my $result = syscall($number, @parameters);
    die "$what: $!\n" if $result < 0;
    return $result;
}

sub mount {
    my ($what, $on, $type, $flags, $options) = @_;
    call("mount $type on $on", $mount, $what, $on, $type, $flags, $options);
}

# A copy of the mount of a folder, which is nowhere yet.
sub copy_mount {
    my ($path) = @_;
    return call("open_tree $path", $open_tree, $here, $path, 0x80001);    # OPEN_TREE_CLONE, close-on-exec
}

sub move_to {
    my ($tree, $path) = @_;
    call("move_mount $path", $move_mount, $tree, "", $here, $path, 4);    # MOVE_MOUNT_F_EMPTY_PATH
}

# A user namespace that maps root to an owner; it lives as long as what is returned.
sub mapping_to {
    my ($uid, $gid) = @_;
    pipe(my $is_made, my $made) or die "pipe: $!\n";
    pipe(my $is_over, my $over) or die "pipe: $!\n";
    my $child = fork() // die "fork: $!\n";
    if ($child == 0) {
        close $over;
        POSIX::_exit(1) if syscall($unshare, $user_namespace) < 0;
        syswrite $made, "1";
        sysread $is_over, my $end, 1;
        POSIX::_exit(0);
    }
    close $made;
    close $is_over;
    sysread($is_made, my $byte, 1) or die "no user namespace can be made\n";
    for (["uid_map", $uid], ["gid_map", $gid]) {
        my ($file, $id) = @$_;
        open(my $map, ">", "/proc/$child/$file") or die "$file: $!\n";
        defined syswrite($map, "0 $id 1\n") or die "$file: $!\n";
    }
    open(my $namespace, "<", "/proc/$child/ns/user") or die "its user namespace: $!\n";
    close $over;
    waitpid $child, 0;
    return $namespace;
}

my ($uid, $gid) = (stat "$place/changes")[4, 5] or die "$place/changes: $!\n";
my $mapping = $uid == 0 ? undef : mapping_to($uid, $gid);
open(my $outside, "<", "/proc/self/ns/mnt") or die "the mount namespace: $!\n";
call("unshare", $unshare, $mount_namespace);
mount("none", "/", "none", 0x44000, "");    # MS_PRIVATE, MS_REC

# In this namespace the names are short and plain: a path may have any characters, and the options of a mount are one page.
my $workspace = "$place/workspace";
mount("tmpfs", $workspace, "tmpfs", 0, "");
my $own = copy_mount($place);
chdir $workspace or die "$workspace: $!\n";
mkdir $_ or die "mkdir: $!\n" for "place", "merged", 0 .. $#layers;
move_to($own, "place");
for my $number (0 .. $#layers) {
    my $tree = copy_mount($layers[$number]);
    # struct mount_attr: MOUNT_ATTR_RDONLY, _NOSUID and _NODEV, and perhaps _IDMAP with the namespace
    my $attributes = pack("QQQQ", 7 | (defined $mapping ? 0x100000 : 0), 0, 0, defined $mapping ? fileno($mapping) : 0);
    call("mount_setattr", $mount_setattr, $tree, "", 0x1000, $attributes, length $attributes);    # AT_EMPTY_PATH
    move_to($tree, "$number");
}
# A renamed folder keeps what is below it where it is (redirect_dir). Two features that a system may have switched on are switched
# off: one binds the changes to these very layers, which may be made again (index), and one takes files apart from their metadata
# (metacopy).
my $options = "lowerdir=" . join(":", 0 .. $#layers) . ",upperdir=place/changes,workdir=place/overlay"
    . ",redirect_dir=on,index=off,metacopy=off,xino=auto";
mount("overlay", "merged", "overlay", 6, $options);    # MS_NOSUID, MS_NODEV
my $merged = copy_mount("merged");
call("setns", $setns, fileno($outside), $mount_namespace);
move_to($merged, $workspace);
