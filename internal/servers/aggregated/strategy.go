package aggregated

import (
	"context"
	"errors"
	"time"

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
	"karmada.io/karmada/internal/extensionserver"
)

// strategy validates and prepares creates and updates of the main resource.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	rules storageRules
}

var (
	_ rest.RESTCreateStrategy  = strategy{}
	_ rest.RESTUpdateStrategy  = strategy{}
	_ rest.RESTDeleteStrategy  = strategy{}
	_ rest.ResetFieldsStrategy = strategy{}
)

func newStrategy(typer runtime.ObjectTyper, rules storageRules) strategy {
	return strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, rules: rules}
}

// NamespaceScoped returns false, because Clusters are cluster-scoped.
func (strategy) NamespaceScoped() bool { return false }

// AllowCreateOnUpdate returns false, so that a PUT to an unknown name returns an error.
func (strategy) AllowCreateOnUpdate() bool { return false }

// AllowUnconditionalUpdate returns true, so that an update without resourceVersion is allowed.
func (strategy) AllowUnconditionalUpdate() bool { return true }

// PrepareForCreate clears the status, which only controllers write, and converts the spec to
// its stored form.
func (s strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	created := obj.(*clusterv1alpha1.Cluster)
	if agent.IsAgent(requestUser(ctx)) {
		if scope, err := s.rules.Scope(ctx, created.Name); err == nil { // Validate reports the error
			scope.Apply(created)
		}
		if s.rules.RequireApproval {
			agent.RequireApproval(created)
		}
	}
	created.Status = clusterv1alpha1.ClusterStatus{}
	created.Generation = 1
	if s.rules.ResourceModels() {
		cluster.Default(created)
	}
	cluster.Canonicalize(created, s.rules.Now())
}

// PrepareForUpdate keeps the status and increments the generation when the spec changes. It first
// converts the spec to its stored form, so that another notation of the same content is not a
// change.
func (s strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	updated, stored := obj.(*clusterv1alpha1.Cluster), old.(*clusterv1alpha1.Cluster)
	updated.Status = stored.Status
	if s.rules.ResourceModels() {
		updated.Spec.ResourceModels = cluster.StandardizeModels(updated.Spec.ResourceModels)
	}
	cluster.Canonicalize(updated, s.rules.Now())
	updated.Generation = stored.Generation
	if !apiequality.Semantic.DeepEqual(updated.Spec, stored.Spec) {
		updated.Generation++
	}
}

// Validate rejects invalid Clusters.
func (s strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	created, rules := obj.(*clusterv1alpha1.Cluster), s.agentRules(ctx)
	errs := append(cluster.Validate(created), cluster.ValidateConfirmation(created, nil, s.rules.Now().Time)...)
	if agent.IsAgent(requestUser(ctx)) {
		scope, err := s.rules.Scope(ctx, created.Name)
		if errors.Is(err, agent.ErrNotRegistered) {
			return append(errs, field.Forbidden(field.NewPath("metadata", "name"), err.Error()))
		}
		if err != nil {
			return append(errs, field.InternalError(field.NewPath("metadata", "name"), err))
		}
		rules.Scope = scope
	}
	return append(errs, agent.ValidateCluster(requestUser(ctx), created, nil, rules)...)
}

// requestUser returns the name of the user who sent the request. The name is empty if the server
// itself sent the request.
func requestUser(ctx context.Context) string {
	if user, ok := request.UserFrom(ctx); ok {
		return user.GetName()
	}
	return ""
}

// receivedAt returns the time when the request was received. It is zero if the server itself sent the
// request.
func receivedAt(ctx context.Context) time.Time {
	received, _ := request.ReceivedTimestampFrom(ctx)
	return received
}

// agentRules returns the rules for the agent who sent the request.
func (s strategy) agentRules(ctx context.Context) agent.ClusterRules {
	return agent.ClusterRules{CanReadSecret: s.canReadSecret(ctx), Addresses: s.rules.Addresses(), ReceivedAt: receivedAt(ctx)}
}

// canReadSecret returns a function that reports whether the user who sent the request may read a
// Secret. The function returns false if authorization fails with an error.
func (s strategy) canReadSecret(ctx context.Context) func(clusterv1alpha1.LocalSecretReference) bool {
	return func(secret clusterv1alpha1.LocalSecretReference) bool {
		user, ok := request.UserFrom(ctx)
		if !ok {
			return false
		}
		decision, _, err := s.rules.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: user, Verb: "get", APIVersion: "v1", Resource: "secrets", Namespace: secret.Namespace, Name: secret.Name, ResourceRequest: true,
		})
		if err != nil {
			klog.FromContext(ctx).Error(err, "Authorizing the read of a Secret", "user", user.GetName(), "secret",
				klog.KRef(secret.Namespace, secret.Name))
		}
		return err == nil && decision == authorizer.DecisionAllow
	}
}

// ValidateUpdate rejects invalid changes.
func (s strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	updated, stored := obj.(*clusterv1alpha1.Cluster), old.(*clusterv1alpha1.Cluster)
	user := requestUser(ctx)
	if agent.IsAgent(user) {
		// Convert the stored Cluster first, because a conversion by the server is not a change by
		// the agent.
		stored = stored.DeepCopy()
		if s.rules.ResourceModels() {
			stored.Spec.ResourceModels = cluster.StandardizeModels(stored.Spec.ResourceModels)
		}
		cluster.Canonicalize(stored, s.rules.Now())
	}
	errs := append(cluster.ValidateUpdate(updated, stored), cluster.ValidateConfirmation(updated, stored, s.rules.Now().Time)...)
	return append(errs, agent.ValidateCluster(user, updated, stored, s.agentRules(ctx))...)
}

// Canonicalize does nothing, because PrepareForCreate and PrepareForUpdate already produce the
// canonical form.
func (strategy) Canonicalize(runtime.Object) {}

// WarningsOnCreate returns warnings about fields that have no effect.
func (s strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return cluster.Warnings(obj.(*clusterv1alpha1.Cluster), nil, s.rules.Now().Time)
}

// WarningsOnUpdate returns warnings about changed fields that have no effect.
func (s strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	return cluster.Warnings(obj.(*clusterv1alpha1.Cluster), old.(*clusterv1alpha1.Cluster), s.rules.Now().Time)
}

// GetResetFields tells server-side apply that the main resource does not write the status.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return extensionserver.ResetFields(clusterv1alpha1.GroupVersion, "status")
}

// statusStrategy validates and prepares updates of the status subresource.
type statusStrategy struct {
	strategy
}

// PrepareForUpdate keeps all fields except the status.
func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	updated, stored := obj.(*clusterv1alpha1.Cluster), old.(*clusterv1alpha1.Cluster)
	updated.Spec = stored.Spec
	metav1.ResetObjectMetaForStatus(updated, stored)
}

// ValidateUpdate accepts all changes by components of the control plane, and validates changes
// by agents.
func (statusStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	written, stored, user := obj.(*clusterv1alpha1.Cluster), old.(*clusterv1alpha1.Cluster), requestUser(ctx)
	if err := agent.ValidateRequest(user, stored, receivedAt(ctx)); err != nil {
		return field.ErrorList{err}
	}
	return agent.ValidateStatus(user, written, stored)
}

// GetResetFields tells server-side apply that this subresource writes only the status.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return extensionserver.ResetFields(clusterv1alpha1.GroupVersion, "spec", "metadata")
}
