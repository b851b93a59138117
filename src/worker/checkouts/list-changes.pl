# Lists what a clone's overlay has changed, by the upper layer alone: so it takes as long as there are changes, however large the clone
# is. It runs outside of any sandbox as root, who alone may read overlayfs's attributes. An agent chooses all names, and may go on
# changing them meanwhile. So each folder is entered by its handle, and only if it is what was looked at: no link is followed.
#
# Arguments: the clone's folder in the upper layer; its folder in the layer below; most entries that are looked at
# stdout: entries that end with NUL, each a letter and a path in the clone:
#   f  a file or a link that is new, changed, or only touched
#   w  a file or a link that is gone
#   d  a folder that is new, moved here, or put in another's place: what is in it is not listed. Or one that is gone, or a file is there
#   n  a repository in the clone, other than the clone's own
# Nothing at all, and exit code 3, if there are more than so many, one with too long a path, or one too deep; and if the clone's
# own folder is gone, or something else is in its place.
use strict;
use warnings;
no warnings "recursion";
use POSIX ();

my ($changes, $below, $most) = @ARGV;
my $lgetxattr = {x86_64 => 192, aarch64 => 9}->{(POSIX::uname())[4]} // exit 3;
# A path has at most 4,096 bytes (PATH_MAX); each level holds a handle, of which a process has at least 256.
my ($longest, $deepest) = (3_000, 200);
my @found;

# Whether the file of this name in the working directory has an attribute.
sub has_attribute {
    my ($name, $attribute) = @_;
    my $value = "\0" x 8;
    return syscall($lgetxattr, $name, $attribute, $value, length $value) >= 0 || $! == POSIX::ERANGE;
}

# Whether the layer below has a folder of this path.
sub was_folder {
    my ($path) = @_;
    return lstat("$below/$path") && -d _;
}

# Whether a folder shows nothing but what is in the upper layer, or another folder of the layer below than that of its path.
sub is_other_folder {
    my ($name, $path) = @_;
    return has_attribute($name, "trusted.overlay.opaque") || has_attribute($name, "trusted.overlay.redirect") || !was_folder($path);
}

sub list {
    my ($folder, $path, $depth) = @_;
    exit 3 if $depth > $deepest;
    chdir $folder or return;
    while (defined(my $name = readdir $folder)) {
        next if $name eq "." || $name eq ".." || ($path eq "" && $name eq ".git");
        my $inner = $path eq "" ? $name : "$path/$name";
        exit 3 if length $inner > $longest || $most-- <= 0;
        my @entry = lstat $name or next;
        my $is_folder = -d _;
        if ($name eq ".git") { push @found, "n$inner" }
        elsif (!$is_folder) {
            my $is_gone = -c _ && $entry[6] == 0;
            push @found, (was_folder($inner) ? "d" : $is_gone ? "w" : "f") . $inner;
        }
        elsif (is_other_folder($name, $inner)) { push @found, "d$inner" }
        elsif (opendir(my $next, $name)) {
            my @opened = stat $next;
            list($next, $inner, $depth + 1) if "@opened[0, 1]" eq "@entry[0, 1]";
            chdir $folder or return;
        }
    }
}

my @clone = lstat $changes;
exit 3 if !@clone || !-d _ || is_other_folder($changes, "");
opendir(my $top, $changes) or exit 3;
my @opened = stat $top;
exit 3 if "@opened[0, 1]" ne "@clone[0, 1]";
list($top, "", 1);
binmode STDOUT;
print map { "$_\0" } @found;
