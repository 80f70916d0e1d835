package rebalance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/cli/explain"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/rebalance"
	"karmada.io/karmada/internal/loop"
)

// row is a workload with its clusters before and after.
type row struct {
	workload rebalance.Workload
	// key is the key of the workload's binding.
	key client.ObjectKey
	// before and after are the binding's clusters. after is nil while the workload waits.
	before, after binding.Object
	progress      rebalance.Progress
	message       string
}

func newRow(bound binding.Object) *row {
	resource := bound.BindingSpec().Resource
	return &row{
		workload: rebalance.Workload{APIVersion: resource.APIVersion, Kind: resource.Kind, Namespace: resource.Namespace, Name: resource.Name},
		key:      client.ObjectKeyFromObject(bound), before: bound, progress: rebalance.Waiting,
	}
}

func (o *options) selectWorkloads(ctx context.Context, args []string) ([]*row, error) {
	if o.clusterAdded != "" {
		return o.selectForCluster(ctx)
	}
	return o.findNamed(ctx, args)
}

// findNamed returns the workloads that the arguments name. It returns an error if one of them has no binding.
func (o *options) findNamed(ctx context.Context, args []string) ([]*row, error) {
	mapper, err := o.factory.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("reading the types of the control plane: %w", err)
	}
	namespace, _, err := o.factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	var rows []*row
	var errs []error
	for _, arg := range args {
		template, err := explain.Resolve(mapper, []string{arg}, namespace)
		if err != nil {
			return nil, err
		}
		found, err := o.findRow(ctx, template.Kind().GroupKind(), template.Key, arg)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !slices.ContainsFunc(rows, func(listed *row) bool { return listed.key == found.key }) {
			rows = append(rows, found)
		}
	}
	return rows, errors.Join(errs...)
}

func (o *options) findRow(ctx context.Context, kind schema.GroupKind, key types.NamespacedName, arg string) (*row, error) {
	bound, _, err := loop.FindTemplateBinding(ctx, o.karmada, kind, key)
	if err != nil {
		return nil, err
	}
	if bound == nil || !binding.IsOf(bound, kind, key.Name) {
		return nil, fmt.Errorf("%s is not propagated: \"%s trace %s\" explains why", arg, o.Program.Name, arg)
	}
	return newRow(bound), nil
}

// selectForCluster returns the workloads that a fresh scheduling would place in the added cluster, and prints why the
// others are left out.
func (o *options) selectForCluster(ctx context.Context) ([]*row, error) {
	clusters, err := o.listClusters(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(clusters))
	for i := range clusters {
		names[i] = clusters[i].Name
	}
	if err := command.VerifyClustersExist([]string{o.clusterAdded}, names); err != nil {
		return nil, err
	}
	bindings, err := o.listBindings(ctx)
	if err != nil {
		return nil, err
	}
	var rows []*row
	reasons, now := map[string]int{}, time.Now()
	for _, bound := range bindings {
		if isSelected, reason := rebalance.CheckForCluster(bound, o.clusterAdded, clusters, now); isSelected {
			rows = append(rows, newRow(bound))
		} else {
			reasons[reason]++
		}
	}
	slices.SortFunc(rows, func(a, b *row) int {
		return cmp.Or(cmp.Compare(a.workload.Namespace, b.workload.Namespace), cmp.Compare(a.workload.Kind, b.workload.Kind),
			cmp.Compare(a.workload.Name, b.workload.Name))
	})
	o.Program.Messagef("selected %d of %s: a fresh scheduling would place these in cluster %s, where they have nothing yet",
		len(rows), count(len(bindings)), o.clusterAdded)
	o.explainLeftOut(reasons)
	return rows, nil
}

// maxReasons limits the lines about workloads that are not selected.
const maxReasons = 5

func (o *options) explainLeftOut(reasons map[string]int) {
	sorted := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b))
	})
	for i, reason := range sorted {
		if i == maxReasons {
			o.Program.Messagef("  and %d more reasons", len(sorted)-i)
			return
		}
		o.Program.Messagef("  %d left out: %s", reasons[reason], reason)
	}
}

func (o *options) listClusters(ctx context.Context) ([]*clusterv1alpha1.Cluster, error) {
	var clusters []*clusterv1alpha1.Cluster
	err := command.ForEachPage(ctx, o.karmada, func(page *clusterv1alpha1.ClusterList) {
		for i := range page.Items {
			clusters = append(clusters, &page.Items[i])
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing Clusters: %w", err)
	}
	return clusters, nil
}

// listBindings returns the bindings of the namespace, or of all namespaces and without a namespace.
func (o *options) listBindings(ctx context.Context) ([]binding.Object, error) {
	var bindings []binding.Object
	err := command.ForEachPage(ctx, o.karmada, func(page *workv1alpha2.ResourceBindingList) {
		for i := range page.Items {
			bindings = append(bindings, &page.Items[i])
		}
	}, client.InNamespace(o.Namespace))
	if err == nil && o.Namespace == "" {
		err = command.ForEachPage(ctx, o.karmada, func(page *workv1alpha2.ClusterResourceBindingList) {
			for i := range page.Items {
				bindings = append(bindings, &page.Items[i])
			}
		})
	}
	if err != nil {
		return nil, fmt.Errorf("listing bindings: %w", err)
	}
	return bindings, nil
}

// preview sets where a fresh scheduling would place the workloads.
func (o *options) preview(ctx context.Context, rows []*row) error {
	clusters, err := o.listClusters(ctx)
	if err != nil {
		return err
	}
	o.Program.Messagef("note: the capacity is that in the status of the Clusters, so accurate estimators may find less room")
	for _, each := range rows {
		each.after = binding.ShallowCopy(each.before)
		if each.before.BindingSpec().Placement == nil {
			each.progress, each.message = rebalance.Skipped, "it goes to the clusters of the workloads that need it"
			continue
		}
		explanation := rebalance.Preview(each.before, clusters, time.Now())
		each.progress = rebalance.Placed
		if explanation.Err != nil {
			each.progress, each.message = rebalance.NotPlaced, explanation.Err.Error()
			continue
		}
		each.after.BindingSpec().Clusters = explanation.Result.Clusters
	}
	return nil
}
