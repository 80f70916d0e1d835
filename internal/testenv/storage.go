package testenv

import (
	"context"
	"fmt"
	"path/filepath"

	"karmada.io/karmada/internal/standalone/controlplane"
)

// Storage is the directory of the control plane's etcd.
func (e *Env) Storage() string { return filepath.Join(e.dir, "etcd") }

// Replace stops the control plane, calls replace, which may change its storage, and
// starts it again at the same address. The components, the members and agents run on.
func (e *Env) Replace(ctx context.Context, replace func() error) error {
	ports := map[string]int{controlplane.APIServer: e.control.Port()}
	e.control.Stop()
	if err := replace(); err != nil {
		return err
	}
	var err error
	e.control, err = controlplane.Start(context.WithoutCancel(ctx), controlplane.Options{Dir: e.dir, Ports: ports})
	if err != nil {
		return fmt.Errorf("starting the control plane again: %w", err)
	}
	return nil
}
