package registry

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/klog/v2"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/domain/cluster"
)

// strategy rules creates and updates of the main resource.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	rules Rules
}

var (
	_ rest.RESTCreateStrategy  = strategy{}
	_ rest.RESTUpdateStrategy  = strategy{}
	_ rest.RESTDeleteStrategy  = strategy{}
	_ rest.ResetFieldsStrategy = strategy{}
)

func newStrategy(typer runtime.ObjectTyper, rules Rules) strategy {
	return strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, rules: rules}
}

// NamespaceScoped is false: a Cluster belongs to the whole control plane.
func (strategy) NamespaceScoped() bool { return false }

// AllowCreateOnUpdate is false: a PUT to an unknown name is an error.
func (strategy) AllowCreateOnUpdate() bool { return false }

// AllowUnconditionalUpdate is true: an update without resourceVersion wins.
func (strategy) AllowUnconditionalUpdate() bool { return true }

// PrepareForCreate empties the status, which only controllers report, and brings
// the spec into the form in which it is stored.
func (s strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	created := obj.(*clusterv1alpha1.Cluster)
	created.Status = clusterv1alpha1.ClusterStatus{}
	created.Generation = 1
	if s.rules.ResourceModels() {
		cluster.Default(created)
	}
	cluster.Canonicalise(created, s.rules.Now())
}

// PrepareForUpdate keeps the status and counts changes of the spec. The spec is
// brought into its stored form first, so that another spelling of the same
// content is no change.
func (s strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	updated, stored := obj.(*clusterv1alpha1.Cluster), old.(*clusterv1alpha1.Cluster)
	updated.Status = stored.Status
	if s.rules.ResourceModels() {
		updated.Spec.ResourceModels = cluster.StandardiseModels(updated.Spec.ResourceModels)
	}
	cluster.Canonicalise(updated, s.rules.Now())
	updated.Generation = stored.Generation
	if !apiequality.Semantic.DeepEqual(updated.Spec, stored.Spec) {
		updated.Generation++
	}
}

// Validate refuses Clusters that must not be stored.
func (s strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	created := obj.(*clusterv1alpha1.Cluster)
	return append(cluster.Validate(created), agent.ValidateCluster(requester(ctx), created, nil, s.readable(ctx))...)
}

// requester is the user who sent the request, nobody for the server itself.
func requester(ctx context.Context) string {
	if who, ok := request.UserFrom(ctx); ok {
		return who.GetName()
	}
	return ""
}

// readable tells whether the user who sent the request may read a Secret. Who cannot
// be asked about may not.
func (s strategy) readable(ctx context.Context) func(clusterv1alpha1.LocalSecretReference) bool {
	return func(secret clusterv1alpha1.LocalSecretReference) bool {
		who, ok := request.UserFrom(ctx)
		if !ok {
			return false
		}
		decision, _, err := s.rules.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: who, Verb: "get", APIVersion: "v1", Resource: "secrets", Namespace: secret.Namespace, Name: secret.Name, ResourceRequest: true,
		})
		if err != nil {
			klog.FromContext(ctx).Error(err, "Asking whether a user may read a Secret", "user", who.GetName(), "secret", klog.KRef(secret.Namespace, secret.Name))
		}
		return err == nil && decision == authorizer.DecisionAllow
	}
}

// ValidateUpdate refuses changes that must not be stored.
func (s strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	updated, stored := obj.(*clusterv1alpha1.Cluster), old.(*clusterv1alpha1.Cluster)
	user := requester(ctx)
	if agent.IsAgent(user) {
		// What the server itself brings into its stored form is no change by the agent.
		stored = stored.DeepCopy()
		if s.rules.ResourceModels() {
			stored.Spec.ResourceModels = cluster.StandardiseModels(stored.Spec.ResourceModels)
		}
		cluster.Canonicalise(stored, s.rules.Now())
	}
	return append(cluster.ValidateUpdate(updated, stored), agent.ValidateCluster(user, updated, stored, s.readable(ctx))...)
}

// Canonicalize does nothing: the generation is decided on the canonical form, so
// preparing has produced it already.
func (strategy) Canonicalize(runtime.Object) {}

// WarningsOnCreate tells of orders that are in vain.
func (s strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return cluster.Warnings(obj.(*clusterv1alpha1.Cluster), nil, s.rules.Now().Time)
}

// WarningsOnUpdate tells of new orders that are in vain.
func (s strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	return cluster.Warnings(obj.(*clusterv1alpha1.Cluster), old.(*clusterv1alpha1.Cluster), s.rules.Now().Time)
}

// GetResetFields tells server-side apply that nobody owns the status here.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("status")
}

// statusStrategy rules updates of the status subresource.
type statusStrategy struct {
	strategy
}

// PrepareForUpdate keeps everything but the status.
func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	updated, stored := obj.(*clusterv1alpha1.Cluster), old.(*clusterv1alpha1.Cluster)
	updated.Spec = stored.Spec
	metav1.ResetObjectMetaForStatus(updated, stored)
}

// ValidateUpdate accepts what components of the control plane report, and of what an
// agent reports that which an agent may.
func (statusStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return agent.ValidateStatus(requester(ctx), obj.(*clusterv1alpha1.Cluster), old.(*clusterv1alpha1.Cluster))
}

// GetResetFields tells server-side apply that only the status can be owned here.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("spec", "metadata")
}

func resetFields(names ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, name := range names {
		set.Insert(fieldpath.MakePathOrDie(name))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(clusterv1alpha1.GroupVersion.String()): set,
	}
}
