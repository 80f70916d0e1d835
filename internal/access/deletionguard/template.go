package deletionguard

import (
	"context"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/servedkinds"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// templateStateCache stores the states of templates for a short time, because the Works of one
// binding in many clusters need the same state.
type templateStateCache struct{ entries *lru.Cache }

type cachedTemplateState struct {
	state  guard.TemplateState
	readAt time.Time
}

const (
	maxTemplateStates = 8192
	// explainingStateTTL is how long a stored state is valid if it explains a deletion.
	// unexplainingStateTTL applies to all other states.
	explainingStateTTL   = 10 * time.Second
	unexplainingStateTTL = 500 * time.Millisecond
)

func (c *templateStateCache) get(binding string, now time.Time) (guard.TemplateState, bool) {
	value, ok := c.entries.Get(binding)
	if !ok || binding == "" {
		return guard.TemplateNotRead, false
	}
	cached, ok := value.(cachedTemplateState)
	ttl := unexplainingStateTTL
	if cached.state == guard.TemplateDeleted || cached.state == guard.TemplateUnclaimed {
		ttl = explainingStateTTL
	}
	return cached.state, ok && now.Sub(cached.readAt) <= ttl
}

// readTemplateState returns the template state of a Work whose owner does not exist.
func (f *factCollector) readTemplateState(ctx context.Context, karmadaWork *workv1alpha1.Work) guard.TemplateState {
	id, now := bindingID(karmadaWork), f.now()
	if state, ok := f.templates.get(id, now); ok {
		return state
	}
	state := f.readUncachedTemplateState(ctx, karmadaWork)
	f.templates.entries.Add(id, cachedTemplateState{state: state, readAt: now})
	return state
}

// templateOrigin identifies the template of a Work.
type templateOrigin struct {
	kind schema.GroupVersionKind
	key  types.NamespacedName
	uid  types.UID
	// isNameGuessed is true if an override renamed the object, so that the name of the template is
	// derived from the name of the binding. With a guessed name, the Guard can prove that a
	// template exists, but not that it does not exist.
	isNameGuessed bool
}

func newTemplateOrigin(karmadaWork *workv1alpha1.Work) (templateOrigin, bool) {
	manifest, err := work.DecodeManifestMetadata(karmadaWork.Spec.Workload.Manifests[0])
	if err != nil {
		return templateOrigin{}, false
	}
	o := templateOrigin{kind: manifest.GroupVersionKind(), key: client.ObjectKeyFromObject(manifest), uid: annotatedTemplateUID(manifest)}
	for _, namespaced := range []bool{true, false} {
		bound, ok := binding.ReferencedBinding(karmadaWork, namespaced)
		if !ok {
			continue
		}
		o.key.Namespace = bound.Namespace
		if names := binding.Names(o.kind.GroupKind(), o.key.Name); !slices.Contains(names[:], bound.Name) {
			o.key.Name, o.isNameGuessed = strings.TrimSuffix(bound.Name, "-"+strings.ToLower(o.kind.Kind)), true
		}
		break
	}
	return o, true
}

// readUncachedTemplateState reads the Work's template state from the API server.
func (f *factCollector) readUncachedTemplateState(ctx context.Context, karmadaWork *workv1alpha1.Work) guard.TemplateState {
	if len(karmadaWork.Spec.Workload.Manifests) == 0 {
		// A Work without a manifest has no objects in the member.
		return guard.TemplateDeleted
	}
	origin, ok := newTemplateOrigin(karmadaWork)
	if !ok {
		return guard.TemplateUnreadable
	}
	template, state := f.readTemplateObject(ctx, origin)
	switch {
	case state == guard.TemplateDeleted && origin.isNameGuessed:
		return guard.TemplateUnreadable
	case state != guard.TemplateInUse:
		return state
	case origin.isNameGuessed && template.UID != origin.uid:
		return guard.TemplateUnreadable
	case origin.uid != "" && template.UID != origin.uid, template.DeletionTimestamp != nil:
		return guard.TemplateDeleted
	case template.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] == "" &&
		template.Labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] == "":
		state = f.unclaimedState(ctx, origin, template)
	}
	if state == guard.TemplateInUse && f.isNamespaceTerminating(ctx, template.Namespace) {
		return guard.TemplateDeleted
	}
	return state
}

// unclaimedState returns the state of a template that no policy claims. The state is TemplateInUse
// if a workload depends on the template, because the dependencies controller then creates the
// binding of the template again.
func (f *factCollector) unclaimedState(ctx context.Context, origin templateOrigin,
	template *metav1.PartialObjectMetadata) guard.TemplateState {
	bound, err := loop.ListBindings(ctx, f.karmadaCache, true, client.InNamespace(template.Namespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		return guard.TemplateUnreadable
	}
	id := dependency.ObjectID{Kind: origin.kind.GroupKind(), Key: client.ObjectKeyFromObject(template)}
	for _, dependent := range bound {
		annotation := dependent.GetAnnotations()[workv1alpha2.DependenciesAnnotation]
		if annotation == "" || !dependent.BindingSpec().PropagateDeps || dependent.GetDeletionTimestamp() != nil {
			continue
		}
		references, err := dependency.Decode(annotation)
		if err != nil || slices.ContainsFunc(references, func(reference dependency.Reference) bool {
			return dependency.Matches(reference, id, template.Labels)
		}) {
			return guard.TemplateInUse
		}
	}
	return guard.TemplateUnclaimed
}

// readTemplateObject reads a template from the API server, in any served version of its kind. If
// the returned state is TemplateInUse, the returned template is not nil.
func (f *factCollector) readTemplateObject(ctx context.Context,
	origin templateOrigin) (*metav1.PartialObjectMetadata, guard.TemplateState) {
	template, err := f.readTemplateVersion(ctx, origin, origin.kind.Version)
	if !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) || servedkinds.IsObjectNotFound(err, origin.key.Name) {
		return template, templateStateFrom(err, origin.key.Name)
	}
	versions, availability, discoveryErr := servedkinds.LookupGroup(f.discovery, origin.kind.GroupKind())
	if discoveryErr != nil {
		return nil, guard.TemplateUnreadable
	}
	if availability == servedkinds.NotServed {
		return nil, guard.TemplateNotServed
	}
	for _, version := range versions {
		if template, err = f.readTemplateVersion(ctx, origin, version); err == nil || servedkinds.IsObjectNotFound(err, origin.key.Name) {
			return template, templateStateFrom(err, origin.key.Name)
		}
	}
	return nil, guard.TemplateUnreadable
}

func (f *factCollector) readTemplateVersion(ctx context.Context, origin templateOrigin,
	version string) (*metav1.PartialObjectMetadata, error) {
	template := &metav1.PartialObjectMetadata{}
	template.SetGroupVersionKind(origin.kind.GroupKind().WithVersion(version))
	return template, f.apiReader.Get(ctx, origin.key, template)
}

func templateStateFrom(err error, name string) guard.TemplateState {
	switch {
	case err == nil:
		return guard.TemplateInUse
	case servedkinds.IsObjectNotFound(err, name):
		return guard.TemplateDeleted
	default:
		return guard.TemplateUnreadable
	}
}

// isNamespaceTerminating reports whether the namespace is being deleted. A template in such a
// namespace may exist for a short time after its binding, because the objects in the namespace are
// deleted in any order.
func (f *factCollector) isNamespaceTerminating(ctx context.Context, name string) bool {
	if name == "" {
		return false
	}
	namespace := newNamespace(name)
	err := f.apiReader.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	return err == nil && namespace.GetDeletionTimestamp() != nil
}
