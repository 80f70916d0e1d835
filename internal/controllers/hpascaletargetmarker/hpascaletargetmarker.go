// Package hpascaletargetmarker labels the templates that propagated HorizontalPodAutoscalers (HPAs)
// scale, so that the execution controller keeps the replicas that the HPAs set in the members.
//
// Invariants:
//   - The controller removes a label only if an annotation shows that it added the label itself, and
//     only if all HPAs have been listed and none of them scales the template.
//   - The labels are derived from the current HPAs, so several HPAs may scale one template, and
//     changes while the process was not running are found at the start.
//   - Only kinds with interpreter rules for replicas or for retained fields are watched, so that users
//     cannot start watches of any kind.
package hpascaletargetmarker

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/memberhpa"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Name is the name of the controller in flags and logs.
const Name = "hpa-scale-target-marker"

// Options configure the controller.
type Options struct {
	// Workers is the number of templates that are processed in parallel.
	Workers int
	// Backoff is the backoff for templates that failed.
	Backoff loop.Backoff
}

// DefaultOptions returns the options of a production control plane.
func DefaultOptions() Options { return Options{Workers: 2, Backoff: loop.DefaultBackoff()} }

type reconciler struct {
	karmada client.Client
	hpas    *hpaWatch
	targets *targetWatches
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, manager *watches.Manager, rules interpreter.Source, o Options) error {
	log := mgr.GetLogger().WithValues("controller", Name)
	hpas := &hpaWatch{manager: manager}
	r := &reconciler{karmada: mgr.GetClient(), hpas: hpas, targets: newTargetWatches(manager, rules, hpas.scales, log)}
	options := loop.ControllerOptions[memberhpa.Target](mgr, o.Workers, o.Backoff)
	options.Reconciler = r
	options.LogConstructor = func(target *memberhpa.Target) logr.Logger {
		if target == nil {
			return log
		}
		return log.WithValues("kind", target.Kind.Kind, "template", types.NamespacedName{Namespace: target.Namespace, Name: target.Name})
	}
	c, err := controller.NewTyped(Name, mgr, options)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	for _, err := range []error{
		c.Watch(r.newHPASource()), c.Watch(r.newBindingSource(mgr.GetCache())),
		c.Watch(interpreters.NewSource(rules, r.targets.retryKinds)),
	} {
		if err != nil {
			return fmt.Errorf("setting up %s: %w", Name, err)
		}
	}
	return nil
}

// Reconcile implements reconcile.TypedReconciler.
func (r *reconciler) Reconcile(ctx context.Context, target memberhpa.Target) (reconcile.Result, error) {
	template, isKnown := r.targets.get(target)
	if !isKnown {
		return loop.StaleResult(), nil
	}
	if template == nil {
		return reconcile.Result{}, nil
	}
	isScaled, isKnown := r.hpas.scales(target)
	if !isKnown {
		return loop.StaleResult(), nil
	}
	desired := template.DeepCopy()
	if !memberhpa.SetMark(desired, isScaled) {
		return reconcile.Result{}, nil
	}
	_, err := patch.Object(ctx, r.karmada, template, desired)
	return loop.Result(client.IgnoreNotFound(err))
}
