package testenv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"karmada.io/karmada/internal/access/epoch"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/gates"
)

// components are the running components of Karmada, from one start to the next stop.
type components struct {
	stop context.CancelFunc
	done chan error
}

// StartComponents starts the components with FeatureGates and Settings. They have no state but
// the stored objects. It returns when their caches are synced.
func (e *Env) StartComponents(ctx context.Context) error {
	settings := programs.DefaultSettings(gates.New())
	if err := settings.Gates.Set(e.FeatureGates); err != nil {
		return fmt.Errorf("setting feature gates: %w", err)
	}
	if e.Settings != nil {
		e.Settings(&settings)
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	karmada := rest.CopyConfig(e.Config)
	if e.Through != "" {
		karmada.Host = e.Through
	}
	karmada.Wrap(e.Wrap)
	options := programs.HostOptions{Settings: &settings, WrapMemberTransport: e.Wrap, EpochMemory: &epoch.StorageRecord{}}
	lives, err := programs.NewRestartingHost(life, func(ctx context.Context) (*programs.Host, error) {
		host, err := programs.NewHost(ctx, karmada, options)
		if err != nil {
			return nil, err
		}
		return host, host.Add(programs.ControllerManager, programs.Scheduler)
	})
	if err != nil {
		stop()
		return err
	}
	running := &components{stop: stop, done: make(chan error, 1)}
	go func() { running.done <- lives.Run(life) }()
	e.components = running
	return lives.Ready(ctx)
}

// StopComponents stops the components in the middle of their work. The API servers keep
// running.
func (e *Env) StopComponents() error {
	running := e.components
	if running == nil {
		return nil
	}
	e.components = nil
	running.stop()
	select {
	case err := <-running.done:
		return err
	case <-time.After(Patience):
		return fmt.Errorf("the components still run %s after their context was canceled", Patience)
	}
}

// RestartComponents stops and starts the components.
func (e *Env) RestartComponents(ctx context.Context) error {
	return errors.Join(e.StopComponents(), e.StartComponents(ctx))
}
