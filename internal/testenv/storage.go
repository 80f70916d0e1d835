package testenv

import (
	"context"
	"fmt"
	"path/filepath"

	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/standalone/controlplane"
)

func (e *Env) childOptions(ports map[string]int) childOptions {
	return childOptions{Dir: e.dir, AuditLog: e.writes.path, LogFile: e.logFile, Ports: ports}
}

// Storage returns the etcd data directory of the control plane.
func (e *Env) Storage() string { return filepath.Join(e.dir, "etcd") }

// Certificates returns the directory of the control plane's certificate authority.
func (e *Env) Certificates() pki.Dir { return pki.Dir{Path: filepath.Join(e.dir, "pki")} }

// Replace stops the control plane, calls replace, and starts the control plane again at the same address.
// replace may change the control plane's storage. Components, members and agents continue to run.
func (e *Env) Replace(ctx context.Context, replace func() error) error {
	ports := map[string]int{controlplane.APIServer: e.control.port}
	e.control.Stop()
	if err := replace(); err != nil {
		return err
	}
	var err error
	e.control, err = startChild(context.WithoutCancel(ctx), e.childOptions(ports))
	if err != nil {
		return fmt.Errorf("starting the control plane again: %w", err)
	}
	return nil
}
