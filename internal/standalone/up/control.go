package up

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/net/netutil"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/standalone/etcd"
)

const (
	// changesSocket is the name of the socket in the data directory on which a running installation
	// accepts changes to its members.
	changesSocket = "changes.sock"
	// maxChangeClients limits the number of connections to the socket, and changeRequestTimeout limits
	// the time in which a client must send its request.
	maxChangeClients     = 8
	changeRequestTimeout = 5 * time.Second
	maxChangeRequest     = 4 << 10
)

// changeRequest is what a client sends. The response is a stream of events. The last event is ready or
// has an error.
type changeRequest struct {
	// Token is the content of the token file. It proves that the client may read the data directory. A
	// Pod's program in a member can connect to the socket, but the kernel prevents it from reading the
	// files in the data directory.
	Token string `json:"token"`
	memberChange
}

// serveChanges accepts changes to the members on the socket until ctx ends. stop closes the socket and
// waits for the changes in progress.
func (i *installation) serveChanges(ctx context.Context) (stop func(), err error) {
	token := rand.Text()
	if err := pki.WriteFile(i.dir.changesTokenFile(), []byte(token), 0o600); err != nil {
		return nil, err
	}
	socket, err := etcd.OpenSocketDir(i.dir.path, changesSocket)
	if err != nil {
		return nil, err
	}
	defer func() { _ = socket.Close() }()
	listener, err := socket.Listen()
	if err != nil {
		return nil, err
	}
	// Let the next start remove the file, because the path may no longer be valid after this function
	// returns.
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	limited := netutil.LimitListener(listener, maxChangeClients)
	i.wg.Go(func() {
		for {
			connection, err := limited.Accept()
			if err != nil {
				return // the listener was closed
			}
			i.wg.Go(func() { i.serveChange(ctx, connection, token) })
		}
	})
	return func() { _ = limited.Close() }, nil
}

// serveChange reads one request from the connection and changes the members as requested.
func (i *installation) serveChange(ctx context.Context, connection net.Conn, token string) {
	defer func() { _ = connection.Close() }()
	_ = connection.SetReadDeadline(time.Now().Add(changeRequestTimeout))
	var request changeRequest
	if err := json.NewDecoder(io.LimitReader(connection, maxChangeRequest)).Decode(&request); err != nil {
		return
	}
	if subtle.ConstantTimeCompare([]byte(request.Token), []byte(token)) != 1 {
		return
	}
	send := newEventEncoder(deadlineWriter{connection})
	if err := i.change(ctx, request.memberChange, newProgress(send)); err != nil {
		klog.FromContext(ctx).Error(err, "Changing the members")
		send(event{Error: err.Error()})
		return
	}
	send(event{Ready: true})
}

// deadlineWriter writes to a client that may have stopped reading.
type deadlineWriter struct{ net.Conn }

func (d deadlineWriter) Write(data []byte) (int, error) {
	_ = d.SetWriteDeadline(time.Now().Add(changeRequestTimeout))
	return d.Conn.Write(data)
}

// requestChange requests the running installation to change its members, and prints the progress.
func requestChange(ctx context.Context, dir dataDir, change memberChange, out io.Writer) error {
	pid, err := dir.runningProcess(ctx)
	if err != nil {
		return err
	}
	if pid == 0 {
		return fmt.Errorf("%w on %s: start it with `karmada up --data-dir %s`, which also has --members", errNotRunning, dir.path, dir.quoted())
	}
	token, err := os.ReadFile(dir.changesTokenFile())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reading the token for changes of members: %w", err)
	}
	connection, err := dialChanges(dir)
	if err != nil {
		return fmt.Errorf("%w (process %d), and changes its members only when it is ready: see `karmada status --data-dir %s`", errStarting, pid,
			dir.quoted())
	}
	defer func() { _ = connection.Close() }()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	if err := json.NewEncoder(connection).Encode(changeRequest{Token: strings.TrimSpace(string(token)), memberChange: change}); err != nil {
		return fmt.Errorf("sending the change to process %d: %w", pid, err)
	}
	err = showEvents(connection, out, dir.logFile("karmada"), filepath.Join(dir.logsDir(), "MEMBER.log"))
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: process %d continues the change: see `karmada status --data-dir %s`", pid, dir.quoted())
	}
	return err
}

func dialChanges(dir dataDir) (net.Conn, error) {
	socket, err := etcd.OpenSocketDir(dir.path, changesSocket)
	if err != nil {
		return nil, err
	}
	defer func() { _ = socket.Close() }()
	return net.DialTimeout("unix", socket.Path(), changeRequestTimeout)
}
