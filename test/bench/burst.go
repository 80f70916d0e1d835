package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// wave is one change to all templates at once.
type wave struct {
	scenario string
	// act sends the change.
	act func(ctx context.Context, names []string) error
	// arrived is what every member shows when the change has come.
	arrived condition
	// reported is what the template shows when it knows.
	reported condition
}

func (b *bench) burst(ctx context.Context) error {
	return b.wave(ctx, b.creation())
}

func (b *bench) update(ctx context.Context) error {
	if err := b.ensureTemplates(ctx); err != nil {
		return err
	}
	return b.wave(ctx, wave{
		scenario: "update",
		act:      b.changeImage,
		arrived:  hasImage(secondImage),
		reported: isRolledOut(secondImage, b.allReplicas()),
	})
}

func (b *bench) remove(ctx context.Context) error {
	if err := b.ensureTemplates(ctx); err != nil {
		return err
	}
	return b.wave(ctx, wave{scenario: "delete", act: b.delete, arrived: isAbsent, reported: isAbsent})
}

func (b *bench) creation() wave {
	return wave{scenario: "burst", act: b.create, arrived: isPresent, reported: isReady(b.allReplicas())}
}

// wave measures a change: the time it takes, and what it costs.
func (b *bench) wave(ctx context.Context, w wave) error {
	return b.observed(ctx, func(ctx context.Context, o *observation) error {
		list := b.templates()
		arrived, reported := o.everywhere(list, w.arrived), o.inKarmada(list, w.reported)
		before, err := b.sample(ctx)
		if err != nil {
			return err
		}
		start := time.Now()
		if err := w.act(ctx, list); err != nil {
			return err
		}
		sent := time.Now()
		if err := await(ctx, slices.Concat(arrived, reported)...); err != nil {
			return err
		}
		after, err := b.sampleSettled(ctx)
		if err != nil {
			return err
		}
		b.report.addSpan(w.scenario, "all requests answered", sent.Sub(start), len(list))
		b.report.addSpan(w.scenario, "in every member", last(arrived).Sub(start), len(list))
		b.report.addSpan(w.scenario, "known to every template", last(reported).Sub(start), len(list))
		b.report.addCost(w.scenario, before, after, len(list))
		return nil
	})
}

// propagate creates templates that do not exist yet and waits until all run everywhere.
func (b *bench) propagate(ctx context.Context, o *observation, list []string) error {
	arrived := o.inKarmada(list, isReady(b.allReplicas()))
	if err := b.create(ctx, list); err != nil {
		return err
	}
	return await(ctx, arrived...)
}

// ensureTemplates makes a scenario independent of those before it.
func (b *bench) ensureTemplates(ctx context.Context) error {
	return b.observed(ctx, func(ctx context.Context, o *observation) error {
		return b.propagate(ctx, o, b.templates())
	})
}

func (b *bench) templates() []string { return names("web", b.options.templates) }

func (b *bench) create(ctx context.Context, list []string) error {
	return b.each(list, func(name string) error {
		_, err := b.fleet.karmada.typed.AppsV1().Deployments(b.fleet.namespace).
			Create(ctx, templateFor(name, b.options.replicas), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating Deployment %s: %w", name, err)
		}
		return nil
	})
}

func (b *bench) changeImage(ctx context.Context, list []string) error {
	patch, err := json.Marshal([]map[string]string{
		{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": secondImage},
	})
	if err != nil {
		return fmt.Errorf("encoding the change of image: %w", err)
	}
	return b.each(list, func(name string) error {
		_, err := b.fleet.karmada.typed.AppsV1().Deployments(b.fleet.namespace).
			Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("changing Deployment %s: %w", name, err)
		}
		return nil
	})
}

func (b *bench) delete(ctx context.Context, list []string) error {
	background := metav1.DeletePropagationBackground
	return b.each(list, func(name string) error {
		err := b.fleet.karmada.typed.AppsV1().Deployments(b.fleet.namespace).
			Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
		if err != nil {
			return fmt.Errorf("deleting Deployment %s: %w", name, err)
		}
		return nil
	})
}

// each runs act for every name, some at the same time, and stops at an error.
func (b *bench) each(list []string, act func(name string) error) error {
	var group errgroup.Group
	group.SetLimit(b.options.concurrency)
	for _, name := range list {
		group.Go(func() error { return act(name) })
	}
	return group.Wait()
}
