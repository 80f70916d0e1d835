package testenv

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/standalone/controlplane"
)

// childVariable is the environment variable that contains the options of a child process's control plane.
const childVariable = "KARMADA_TEST_CONTROL_PLANE"

// childStopTimeout limits the time in which a child process stops. After that time it is killed.
const childStopTimeout = 30 * time.Second

// childOptions are the options of a child process's control plane.
type childOptions struct {
	Dir, AuditLog, LogFile string
	Ports                  map[string]int
}

// childControlPlane is a control plane in a child process. It needs its own process, because
// kube-controller-manager registers global names and can run only once in a process.
type childControlPlane struct {
	process *exec.Cmd
	stdin   io.Closer
	ended   chan struct{}
	port    int
	config  *rest.Config
}

// RunControlPlane runs a control plane until the parent process closes the standard input. It does
// nothing and returns isChild false if this process was not started for this purpose. The TestMain
// of a test program that uses a Pool calls RunControlPlane first, and exits with the returned code
// if isChild is true.
func RunControlPlane() (code int, isChild bool) {
	encoded, isChild := os.LookupEnv(childVariable)
	if !isChild {
		return 0, false
	}
	if err := runControlPlane(encoded); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

func runControlPlane(encoded string) error {
	options := childOptions{}
	if err := json.Unmarshal([]byte(encoded), &options); err != nil {
		return fmt.Errorf("reading %s: %w", childVariable, err)
	}
	stopLogs, err := LogTo(options.LogFile)
	if err != nil {
		return err
	}
	defer stopLogs()
	control, err := controlplane.Start(context.Background(), controlplane.Options{
		Dir: options.Dir, Ports: options.Ports, AuditLog: options.AuditLog, AuditPolicy: writesOnly,
		DefaultConfig: controlplane.LocalMembersConfig(),
	})
	if err != nil {
		return err // the parent adds the directory
	}
	defer control.Stop()
	fmt.Println(control.Port())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err // the end of a test
}

// startChild starts a control plane in a child process. The child ends when this process ends, if
// it has not ended before.
func startChild(ctx context.Context, options childOptions) (*childControlPlane, error) {
	starting.Lock()
	defer starting.Unlock()
	encoded, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("encoding the options of a control plane: %w", err)
	}
	c := &childControlPlane{process: exec.Command(os.Args[0]), ended: make(chan struct{})} // this program
	c.process.Env = append(os.Environ(), childVariable+"="+string(encoded))
	c.process.Stderr = os.Stderr
	stdout, err := c.process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting a control plane: %w", err)
	}
	if c.stdin, err = c.process.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting a control plane: %w", err)
	}
	if err := c.process.Start(); err != nil {
		return nil, fmt.Errorf("starting a control plane: %w", err)
	}
	ready := make(chan error, 1)
	go func() {
		defer close(c.ended)
		lines := bufio.NewReader(stdout)
		_, err := fmt.Fscanln(lines, &c.port)
		ready <- err
		_, copyErr := io.Copy(io.Discard, lines)
		if err := errors.Join(copyErr, c.process.Wait()); err != nil {
			klog.Background().Error(err, "A control plane ended", "dir", options.Dir)
		}
	}()
	select {
	case err = <-ready:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil {
		c.config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(options.Dir, "admin.kubeconfig"))
	}
	if err != nil {
		c.Stop()
		return nil, fmt.Errorf("starting a control plane in %s: %w", options.Dir, err)
	}
	c.config.QPS = -1
	return c, nil
}

// Config returns the client configuration of the administrator.
func (c *childControlPlane) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Stop ends the control plane and waits until its process has ended.
func (c *childControlPlane) Stop() {
	_ = c.stdin.Close()
	select {
	case <-c.ended:
	case <-time.After(childStopTimeout):
		_ = c.process.Process.Kill()
		<-c.ended
	}
}
