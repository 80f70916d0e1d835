package etcd

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
)

// maxPath is the longest path, in bytes, that Linux accepts for a unix socket.
const maxPath = 107

// plainPath matches the paths that need no escaping, neither in a URL nor in the value of a flag.
var plainPath = regexp.MustCompile(`^[\w/.@+~-]+$`)

// SocketDir is an open directory with a socket. The path of its socket may be too long for the kernel, or
// contain characters that have a meaning in URLs and flags. The path through the file descriptor has
// neither problem, but only this process can use it.
type SocketDir struct {
	file   *os.File
	socket string
}

// OpenSocketDir opens the directory of a socket with the given name. The path of the socket is valid until
// the directory is closed.
func OpenSocketDir(directory, socket string) (SocketDir, error) {
	absolute, err := filepath.Abs(directory)
	if err != nil {
		return SocketDir{}, fmt.Errorf("resolving the directory of socket %s: %w", socket, err)
	}
	file, err := os.Open(absolute)
	if err != nil {
		return SocketDir{}, fmt.Errorf("opening the directory of socket %s: %w", socket, err)
	}
	return SocketDir{file, socket}, nil
}

// Path returns the path of the socket.
func (d SocketDir) Path() string {
	if path := filepath.Join(d.file.Name(), d.socket); len(path) <= maxPath && plainPath.MatchString(path) {
		return path
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.file.Fd(), d.socket)
}

// Listen opens the socket. It removes a socket that a killed process left.
func (d SocketDir) Listen() (net.Listener, error) {
	path := d.Path()
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("removing the old socket %s: %w: remove it and start again", d.socket, err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("opening socket %s: %w", d.socket, err)
	}
	return listener, nil
}

// Close closes the directory, but not the socket.
func (d SocketDir) Close() error { return d.file.Close() }
