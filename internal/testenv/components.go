package testenv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"karmada.io/karmada/internal/access/epoch"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/controllermanager"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/programs/scheduling"
)

// components are the running components of Karmada, from their start to their next stop.
type components struct {
	stop context.CancelFunc
	done chan error
}

// StartComponents starts the components with FeatureGates and Options, and returns when their
// caches are synced. The components have no state except for the stored objects.
func (e *Env) StartComponents(ctx context.Context) error {
	set := gates.New()
	if err := set.Set(e.FeatureGates); err != nil {
		return fmt.Errorf("setting feature gates: %w", err)
	}
	manager := controllermanager.Default(set)
	if e.Options != nil {
		e.Options(manager)
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	karmada := rest.CopyConfig(e.Config)
	if e.Through != "" {
		karmada.Host = e.Through
	}
	karmada.Wrap(e.Wrap)
	options := programs.HostOptions{Gates: set, WrapMemberTransport: e.Wrap, EpochMemory: &epoch.StorageRecord{}}
	lives, err := programs.NewRestartingHost(life, func(ctx context.Context) (*programs.Host, error) {
		host, err := programs.NewHost(ctx, karmada, options)
		if err != nil {
			return nil, err
		}
		return host, host.Add(manager.Component(), scheduling.New(set))
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

// StopComponents stops the components, also in the middle of their work. The API servers continue
// to run.
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
