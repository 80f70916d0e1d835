package detector

import (
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karmada.io/karmada/internal/loop"
)

// addPolicyControllers registers a controller for each kind of policy.
func (d *detector) addPolicyControllers(mgr manager.Manager, o Options) error {
	for i, reconciler := range d.policyReconcilers {
		scope, workers := reconciler.scope, o.PolicyWorkers
		if scope.isCluster {
			workers = o.ClusterPolicyWorkers
		}
		options := controllerOptions[reconcile.Request](mgr, workers, o)
		options.Reconciler = reconciler
		c, err := controller.New(scope.controllerName, mgr, options)
		if err != nil {
			return fmt.Errorf("adding %s: %w", scope.controllerName, err)
		}
		if err := c.Watch(source.TypedSource[reconcile.Request](d.policyTriggers[i])); err != nil {
			return fmt.Errorf("watching %s: %w", scope.plural, err)
		}
	}
	return nil
}

// addTemplateController registers the controller of templates. Its workers start after all handlers
// are in sync.
func (d *detector) addTemplateController(mgr manager.Manager, o Options) error {
	options := controllerOptions[templateRequest](mgr, o.Workers, o)
	options.Reconciler = d.templateReconciler
	options.LogConstructor = func(r *templateRequest) logr.Logger {
		if r == nil {
			return d.log
		}
		return d.log.WithValues("kind", r.Template.Kind, "template", r.Template.Key)
	}
	c, err := controller.NewTyped(Name, mgr, options)
	if err != nil {
		return fmt.Errorf("adding %s: %w", Name, err)
	}
	return errors.Join(c.Watch(source.TypedSource[templateRequest](d.startup)), c.Watch(d.ruleTriggers.source()))
}

// controllerOptions returns the options of the controllers of templates and of policies.
func controllerOptions[T comparable](mgr manager.Manager, workers int, o Options) controller.TypedOptions[T] {
	options := loop.ControllerOptions[T](mgr, workers, o.Backoff)
	// Names are not validated, because one process may run several control planes.
	options.SkipNameValidation = new(true)
	options.UsePriorityQueue, options.RateLimiter = &o.PriorityQueue, newRateLimiter[T](o)
	return options
}

// newRateLimiter returns a rate limiter for retries. Each item has its own backoff. Without a
// priority queue, all items also share a maximum rate, so that retries do not delay changes by
// users.
func newRateLimiter[T comparable](o Options) workqueue.TypedRateLimiter[T] {
	perItem := loop.NewRateLimiter[T](o.Backoff)
	if o.PriorityQueue {
		return perItem
	}
	return workqueue.NewTypedMaxOfRateLimiter(perItem,
		&workqueue.TypedBucketRateLimiter[T]{Limiter: rate.NewLimiter(rate.Limit(o.RetryRate), o.RetryBurst)})
}
