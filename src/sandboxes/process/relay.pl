# Forwards connections on loopback to the gateway's socket, because few programs can use a unix socket, and starts the command
# with the port filled in: `{gatewayPort}` in its environment and arguments. The same as `relay.cjs` for where there is perl: it
# starts in a few milliseconds, and takes a fifth of the memory. Both are processes of a namespace that ends when this program does.
# Arguments: the socket's path, the command, its arguments.
use strict;

# Linux's numbers, the same on x86-64 and arm64: loading the modules that know them takes three times as long as all else here.
my ($AF_UNIX, $AF_INET, $SOCK_STREAM, $SHUT_WR, $F_SETFL, $READ_WRITE_NONBLOCK, $EINTR, $EAGAIN) = (1, 2, 1, 1, 4, 02 | 04000, 4, 11);
# Of socket addresses: ip(7), unix(7).
my ($inetAddress, $unixAddress) = ('S n a4 x8', 'S a*');
# Bytes that are read at once, and that may wait to be written: then the other end is not read.
my ($piece, $mostWaiting) = (65536, 262144);

my ($socket, @command) = @ARGV;
socket(my $server, $AF_INET, $SOCK_STREAM, 0) or die "no socket: $!\n";
bind($server, pack($inetAddress, $AF_INET, 0, "\x7f\0\0\1")) or die "no port on loopback: $!\n";
listen($server, 1024) or die "no port on loopback: $!\n";
my (undef, $port) = unpack($inetAddress, getsockname $server);

# If either ends, the sandbox does: a command whose way to the network is gone would only see that nothing answers. The relay is not
# the command's child: one that waits for its children must not meet it.
my $relay = fork() // die "no process: $!\n";
if ($relay == 0) {
  closeOutput();
  relay();
}
my $child = fork() // die "no process: $!\n";
if ($child != 0) {
  closeOutput();
  close($server);
  for (my $ended; ($ended = wait()) > 0;) {
    exit 1 if $ended == $relay;
    exit($? & 127 ? 128 + ($? & 127) : $? >> 8) if $ended == $child;
  }
  exit 1;
}
close($server);

my $fill = sub { my ($text) = @_; $text =~ s/\{gatewayPort\}/$port/g; $text };
$ENV{$_} = $fill->($ENV{$_}) for keys %ENV;
# Variables by which programs find a proxy; Node itself only if configured to. Yarn reads only its own variables.
$ENV{$_} = "http://127.0.0.1:$port" for qw(HTTP_PROXY HTTPS_PROXY http_proxy https_proxy YARN_HTTPS_PROXY);
$ENV{$_} = '127.0.0.1,localhost,::1' for qw(NO_PROXY no_proxy);
$ENV{NODE_USE_ENV_PROXY} = '1';
# Of a Java program's options the last counts. By default Maven 3.9 and later ignore Java's own settings
# (https://maven.apache.org/resolver/configuration.html).
my $java = join ' ', map { "-D$_.proxyHost=127.0.0.1 -D$_.proxyPort=$port" } qw(http https);
my %options = (MAVEN_OPTS => "$java -Daether.connector.http.useSystemProperties=true", GRADLE_OPTS => $java, SBT_OPTS => $java);
for my $name (keys %options) {
  my $before = $ENV{$name} // '';
  $ENV{$name} = $before eq '' ? $options{$name} : "$before $options{$name}";
}
@command = map { $fill->($_) } @command;
exec { $command[0] } @command or print STDERR "$command[0]: $!\n";
exit 127;

# Forwards until it is ended. An end of a connection is a hash: its handle, its peer, what waits to be written to it,
# whether nothing more comes from it (`ended`) and whether that was passed to the peer (`passed`).
sub relay {
  $SIG{PIPE} = 'IGNORE';
  my %ends;
  my ($reading, $writing) = ('', '');
  nonblocking($server);
  my $listening = fileno($server);
  my $until = 0;
  while (1) {
    # Without a free descriptor a connection waits: it is not looked at for a moment.
    vec($reading, $listening, 1) = time() >= $until ? 1 : 0;
    my $found = select(my $readable = $reading, my $writable = $writing, undef, $until > time() ? 1 : undef);
    next if $found < 0;
    if (vec($readable, $listening, 1)) {
      if (accept(my $inner, $server)) { connected($inner, \%ends) }
      elsif ($! != $EAGAIN && $! != $EINTR) { $until = time() + 1 }
    }
    for my $end (my @before = values %ends) {
      my $number = $end->{number};
      # Ended with its peer.
      next unless exists $ends{$number};
      pass($end, \%ends) if $number < 8 * length($writable) && vec($writable, $number, 1);
      take($end, \%ends) if exists $ends{$number} && $number < 8 * length($readable) && vec($readable, $number, 1);
    }
    ($reading, $writing) = ('', '');
    for my $end (values %ends) {
      vec($reading, $end->{number}, 1) = 1 if !$end->{ended} && length($end->{peer}{waiting}) < $mostWaiting;
      vec($writing, $end->{number}, 1) = 1 if length($end->{waiting}) > 0;
    }
  }
}

# The output is the command's own: its reader must see its end.
sub closeOutput { open(STDIN, '<', '/dev/null'), open(STDOUT, '>', '/dev/null'), open(STDERR, '>', '/dev/null') }

sub nonblocking { fcntl($_[0], $F_SETFL, $READ_WRITE_NONBLOCK) or die "a socket: $!\n" }

sub connected {
  my ($inner, $ends) = @_;
  # It waits while the gateway's queue is full. If there is no gateway any more, the connection ends.
  socket(my $outer, $AF_UNIX, $SOCK_STREAM, 0) or return;
  connect($outer, pack($unixAddress, $AF_UNIX, "$socket\0")) or return;
  nonblocking($_) for $inner, $outer;
  my ($one, $other) = map { { handle => $_, number => fileno($_), waiting => '', ended => 0, passed => 0 } } $inner, $outer;
  ($one->{peer}, $other->{peer}) = ($other, $one);
  $ends->{$_->{number}} = $_ for $one, $other;
}

sub take {
  my ($end, $ends) = @_;
  my $got = sysread($end->{handle}, my $bytes, $piece);
  if (!defined $got) { return $! == $EAGAIN || $! == $EINTR ? undef : forget($end, $ends) }
  if ($got == 0) { $end->{ended} = 1 }
  else { $end->{peer}{waiting} .= $bytes }
  pass($end->{peer}, $ends);
}

sub pass {
  my ($end, $ends) = @_;
  while (length($end->{waiting}) > 0) {
    my $written = syswrite($end->{handle}, $end->{waiting}, $piece);
    if (!defined $written) { return $! == $EAGAIN || $! == $EINTR ? undef : forget($end, $ends) }
    substr($end->{waiting}, 0, $written) = '';
  }
  return unless $end->{peer}{ended} && !$end->{peer}{passed};
  shutdown($end->{handle}, $SHUT_WR);
  $end->{peer}{passed} = 1;
  forget($end, $ends) if $end->{passed};
}

# Both ends are closed: what refers to each other is never freed otherwise.
sub forget {
  my ($end, $ends) = @_;
  my $peer = $end->{peer};
  for my $one ($end, $peer) {
    delete $ends->{$one->{number}};
    close($one->{handle});
    $one->{peer} = { waiting => '', ended => 1, passed => 1, number => -1 };
  }
}
