package hpascaletargetmarker

import (
	"context"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/domain/memberhpa"
	"karmada.io/karmada/internal/loop"
)

type queue = loop.Queue[memberhpa.Target]

// byTarget is the index of claimed HPAs by the key of the template that they scale.
const byTarget = Name + "/target"

var hpaKind = autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")

// hpaWatch watches the HPAs of the control plane.
type hpaWatch struct {
	manager *watches.Manager
}

// start watches the HPAs until ctx ends.
func (w *hpaWatch) start(ctx context.Context, handler toolscache.ResourceEventHandler) error {
	subscription, err := w.manager.Subscribe(watches.ControlPlane, watches.Query{Kind: hpaKind}, watches.Subscriber{
		Handler: handler, Indexers: toolscache.Indexers{byTarget: targetKeys},
	})
	if err != nil {
		return fmt.Errorf("watching HorizontalPodAutoscalers: %w", err)
	}
	context.AfterFunc(ctx, subscription.Close)
	return nil
}

func targetKeys(object any) ([]string, error) {
	if hpa, ok := object.(*unstructured.Unstructured); ok {
		if target, ok := memberhpa.ScaleTarget(hpa); ok {
			return []string{target.Key()}, nil
		}
	}
	return nil, nil
}

// scales reports whether a claimed HPA scales the template. isKnown is false until the HPAs have been
// listed.
func (w *hpaWatch) scales(target memberhpa.Target) (isScaled, isKnown bool) {
	objects, isWatched := w.manager.Find(watches.ControlPlane, watches.Query{Kind: hpaKind})
	if !isWatched {
		return false, false
	}
	hpas, isKnown := objects.ByIndex(byTarget, target.Key())
	return len(hpas) > 0, isKnown
}

// newHPASource returns a source that queues the templates that HPAs scale.
func (r *reconciler) newHPASource() source.TypedSource[memberhpa.Target] {
	return source.TypedFunc[memberhpa.Target](func(ctx context.Context, q queue) error {
		r.targets.closeWith(ctx)
		return r.hpas.start(ctx, r.newHPAHandler(q))
	})
}

// newHPAHandler returns a handler that queues the template that an HPA scales, and the template that it
// scaled before it changed.
func (r *reconciler) newHPAHandler(q queue) toolscache.ResourceEventHandler {
	return loop.Handlers[*unstructured.Unstructured]{
		Added: func(hpa *unstructured.Unstructured, isInitial bool) {
			if target, ok := memberhpa.ScaleTarget(hpa); ok {
				r.targets.watch(target.Kind, q)
				enqueue(q, target, isInitial)
			}
		},
		Updated: func(before, after *unstructured.Unstructured) {
			older, wasClaimed := memberhpa.ScaleTarget(before)
			newer, isClaimed := memberhpa.ScaleTarget(after)
			if older == newer {
				return
			}
			if wasClaimed {
				enqueue(q, older, false)
			}
			if isClaimed {
				r.targets.watch(newer.Kind, q)
				enqueue(q, newer, false)
			}
		},
		Deleted: func(hpa *unstructured.Unstructured) {
			if target, ok := memberhpa.ScaleTarget(hpa); ok {
				enqueue(q, target, false)
			}
		},
	}
}

func enqueue(q queue, target memberhpa.Target, isInitial bool) {
	if isInitial {
		loop.EnqueueLowPriority(q, 0, target)
		return
	}
	q.Add(target)
}
