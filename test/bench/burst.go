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

// bulkChange is a change that is made to all templates at once.
type bulkChange struct {
	scenario string
	// apply sends the requests of the change.
	apply func(ctx context.Context, names []string) error
	// memberCondition is met when the change has arrived in a member.
	memberCondition condition
	// templateCondition is met when the template's aggregated status shows the change.
	templateCondition condition
}

// Quantities that several scenarios report.
const (
	inMembers        = "in every member"
	inTemplates      = "known to every template"
	statusInTemplate = "status back in the template"
	presentInMembers = "present in every member"
	readyInMembers   = "ready in every member"
	goneFromMembers  = "gone from every member"
)

func (b *bench) burst(ctx context.Context) error {
	if err := b.measureBulkChange(ctx, b.bulkCreation()); err != nil {
		return err
	}
	b.report.addShareOfDirect("burst", inMembers, inMembers, "templates/s")
	b.report.addShareOfDirect("burst", inTemplates, readyInMembers, "templates/s")
	return nil
}

func (b *bench) update(ctx context.Context) error {
	if err := b.ensureTemplates(ctx); err != nil {
		return err
	}
	return b.measureBulkChange(ctx, bulkChange{
		scenario:          "update",
		apply:             b.changeImage,
		memberCondition:   hasImage(secondImage),
		templateCondition: isRolledOut(secondImage, b.allReplicas()),
	})
}

func (b *bench) remove(ctx context.Context) error {
	if err := b.ensureTemplates(ctx); err != nil {
		return err
	}
	deletion := bulkChange{scenario: "delete", apply: b.delete, memberCondition: isAbsent, templateCondition: isAbsent}
	if err := b.measureBulkChange(ctx, deletion); err != nil {
		return err
	}
	b.report.addShareOfDirect("delete", inMembers, goneFromMembers, "templates/s")
	return nil
}

func (b *bench) bulkCreation() bulkChange {
	return bulkChange{scenario: "burst", apply: b.create, memberCondition: isPresent, templateCondition: isReady(b.allReplicas())}
}

// measureBulkChange measures how long a change takes to arrive in all members and templates, and its cost.
func (b *bench) measureBulkChange(ctx context.Context, change bulkChange) error {
	return b.withFleetTracker(ctx, func(ctx context.Context, o *fleetTracker) error {
		names := b.burstTemplateNames()
		arrived, known := o.expectInMembers(names, change.memberCondition), o.expectInKarmada(names, change.templateCondition)
		before, err := b.sample(ctx)
		if err != nil {
			return err
		}
		start := time.Now()
		if err := change.apply(ctx, names); err != nil {
			return err
		}
		sent := time.Now()
		if err := awaitAll(ctx, slices.Concat(arrived, known)...); err != nil {
			return err
		}
		after, err := b.sampleSettled(ctx)
		if err != nil {
			return err
		}
		b.report.addDuration(change.scenario, "all requests completed", sent.Sub(start), len(names))
		b.report.addDuration(change.scenario, inMembers, lastMetAt(arrived).Sub(start), len(names))
		b.report.addDuration(change.scenario, inTemplates, lastMetAt(known).Sub(start), len(names))
		b.report.addCost(change.scenario, before, after, len(names))
		return nil
	})
}

// propagate creates the templates that do not exist and waits until all are ready in all
// members.
func (b *bench) propagate(ctx context.Context, o *fleetTracker, names []string) error {
	ready := o.expectInKarmada(names, isReady(b.allReplicas()))
	if err := b.create(ctx, names); err != nil {
		return err
	}
	return awaitAll(ctx, ready...)
}

// ensureTemplates creates the templates of burst that do not exist, so that a scenario does
// not depend on the scenarios before it.
func (b *bench) ensureTemplates(ctx context.Context) error {
	return b.withFleetTracker(ctx, func(ctx context.Context, o *fleetTracker) error {
		return b.propagate(ctx, o, b.burstTemplateNames())
	})
}

func (b *bench) burstTemplateNames() []string { return numberedNames("web", b.options.templates) }

// create creates the templates that do not exist.
func (b *bench) create(ctx context.Context, names []string) error {
	return b.createIn(ctx, []*cluster{b.fleet.karmada}, names)
}

// createIn creates the Deployments that do not exist in each of the clusters.
func (b *bench) createIn(ctx context.Context, clusters []*cluster, names []string) error {
	return b.forEach(names, func(name string) error {
		for _, c := range clusters {
			template := templateFor(name, b.options.replicas)
			_, err := c.typed.AppsV1().Deployments(b.fleet.namespace).Create(ctx, template, metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("creating Deployment %s in %s: %w", name, c.name, err)
			}
		}
		return nil
	})
}

func (b *bench) changeImage(ctx context.Context, names []string) error {
	patch, err := json.Marshal([]map[string]string{
		{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": secondImage},
	})
	if err != nil {
		return fmt.Errorf("encoding the change of image: %w", err)
	}
	return b.forEach(names, func(name string) error {
		_, err := b.fleet.karmada.typed.AppsV1().Deployments(b.fleet.namespace).
			Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("changing Deployment %s: %w", name, err)
		}
		return nil
	})
}

func (b *bench) delete(ctx context.Context, names []string) error {
	return b.deleteIn(ctx, []*cluster{b.fleet.karmada}, names)
}

// deleteIn deletes the Deployments in each of the clusters.
func (b *bench) deleteIn(ctx context.Context, clusters []*cluster, names []string) error {
	background := metav1.DeletePropagationBackground
	return b.forEach(names, func(name string) error {
		for _, c := range clusters {
			err := c.typed.AppsV1().Deployments(b.fleet.namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
			if err != nil {
				return fmt.Errorf("deleting Deployment %s in %s: %w", name, c.name, err)
			}
		}
		return nil
	})
}

// forEach runs act for every name, several at the same time, and returns the first error.
func (b *bench) forEach(names []string, act func(name string) error) error {
	var group errgroup.Group
	group.SetLimit(b.options.concurrency)
	for _, name := range names {
		group.Go(func() error { return act(name) })
	}
	return group.Wait()
}
