package judge

import (
	"context"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/bindings"
	"karmada.io/karmada/internal/access/kinds"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/served"
	"karmada.io/karmada/internal/domain/work"
)

// proofs remembers for a moment what has become of the templates of bindings: the
// Works of one binding in many clusters ask the same.
type proofs struct{ known *lru.Cache }

type proof struct {
	state guard.Template
	at    time.Time
}

const (
	proofsKept = 8192
	// proofMemory is for how long an explanation is remembered, doubtMemory for how long
	// that there is none.
	proofMemory = 10 * time.Second
	doubtMemory = 500 * time.Millisecond
)

func newProofs() *proofs { return &proofs{known: lru.New(proofsKept)} }

func (p *proofs) recall(binding string, now time.Time) (guard.Template, bool) {
	value, ok := p.known.Get(binding)
	if !ok || binding == "" {
		return guard.Unasked, false
	}
	known, ok := value.(proof)
	memory := doubtMemory
	if known.state == guard.Deleted || known.state == guard.Unclaimed {
		memory = proofMemory
	}
	return known.state, ok && now.Sub(known.at) <= memory
}

func (p *proofs) note(binding string, state guard.Template, now time.Time) {
	p.known.Add(binding, proof{state: state, at: now})
}

// prove reads the template of a Work whose owner is gone.
func (e *facts) prove(ctx context.Context, of *workv1alpha1.Work) guard.Template {
	id, now := bindingID(of), e.now()
	if state, ok := e.proofs.recall(id, now); ok {
		return state
	}
	state := e.template(ctx, of)
	e.proofs.note(id, state, now)
	return state
}

// origin is where the template of a Work is stored.
type origin struct {
	kind schema.GroupVersionKind
	key  types.NamespacedName
	uid  types.UID
	// guessed is true if an override renamed the object, and the name of the template was
	// derived from the name of the binding. A guess can show that a template exists, and
	// not that it does not.
	guessed bool
}

func originOf(of *workv1alpha1.Work) (origin, bool) {
	manifest, err := work.Decode(of.Spec.Workload.Manifests[0])
	if err != nil {
		return origin{}, false
	}
	o := origin{kind: manifest.GroupVersionKind(), key: client.ObjectKeyFromObject(manifest), uid: uidIn(manifest)}
	for _, namespaced := range []bool{true, false} {
		bound, ok := binding.LedTo(of, namespaced)
		if !ok {
			continue
		}
		o.key.Namespace = bound.Namespace
		if bound.Name != binding.Name(o.key.Name, o.kind.Kind) {
			o.key.Name, o.guessed = strings.TrimSuffix(bound.Name, "-"+strings.ToLower(o.kind.Kind)), true
		}
		break
	}
	return o, true
}

// template returns what has become of the template of a Work.
func (e *facts) template(ctx context.Context, of *workv1alpha1.Work) guard.Template {
	if len(of.Spec.Workload.Manifests) == 0 {
		// The member holds nothing of the Work.
		return guard.Deleted
	}
	from, ok := originOf(of)
	if !ok {
		return guard.Unknown
	}
	template, state := e.readTemplate(ctx, from)
	switch {
	case state == guard.Deleted && from.guessed:
		return guard.Unknown
	case state != guard.Kept:
		return state
	case from.guessed && template.UID != from.uid:
		return guard.Unknown
	case from.uid != "" && template.UID != from.uid, template.DeletionTimestamp != nil:
		return guard.Deleted
	case template.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] == "" &&
		template.Labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] == "":
		state = e.unclaimed(ctx, from, template)
	}
	if state == guard.Kept && e.isTerminating(ctx, template.Namespace) {
		return guard.Deleted
	}
	return state
}

// unclaimed returns what has become of a template that no policy claims: it may follow a
// workload that needs it, and then the controller for dependencies binds it again.
func (e *facts) unclaimed(ctx context.Context, from origin, template *metav1.PartialObjectMetadata) guard.Template {
	bound, err := bindings.List(ctx, e.karmada, true, client.InNamespace(template.Namespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		return guard.Unknown
	}
	thing := dependency.Thing{Kind: from.kind.GroupKind(), Key: client.ObjectKeyFromObject(template)}
	for _, each := range bound {
		note := each.GetAnnotations()[workv1alpha2.DependenciesAnnotation]
		if note == "" || !each.BindingSpec().PropagateDeps || each.GetDeletionTimestamp() != nil {
			continue
		}
		references, err := dependency.Decode(note)
		if err != nil || slices.ContainsFunc(references, func(reference dependency.Reference) bool {
			return dependency.Matches(reference, thing, template.Labels)
		}) {
			return guard.Kept
		}
	}
	return guard.Unclaimed
}

// readTemplate reads a template from the API server, in any version in which its kind is
// served. The template is not nil if the state is Kept.
func (e *facts) readTemplate(ctx context.Context, from origin) (*metav1.PartialObjectMetadata, guard.Template) {
	template, err := e.readVersion(ctx, from, from.kind.Version)
	if !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) || served.IsObjectAbsent(err, from.key.Name) {
		return template, stateOf(err, from.key.Name)
	}
	versions, answer, failure := kinds.AskGroup(e.api, from.kind.GroupKind())
	if failure != nil {
		return nil, guard.Unknown
	}
	if answer == served.Absent {
		return nil, guard.Unserved
	}
	for _, version := range versions {
		if template, err = e.readVersion(ctx, from, version); err == nil || served.IsObjectAbsent(err, from.key.Name) {
			return template, stateOf(err, from.key.Name)
		}
	}
	return nil, guard.Unknown
}

func (e *facts) readVersion(ctx context.Context, from origin, version string) (*metav1.PartialObjectMetadata, error) {
	template := &metav1.PartialObjectMetadata{}
	template.SetGroupVersionKind(from.kind.GroupKind().WithVersion(version))
	return template, e.live.Get(ctx, from.key, template)
}

func stateOf(err error, name string) guard.Template {
	switch {
	case err == nil:
		return guard.Kept
	case served.IsObjectAbsent(err, name):
		return guard.Deleted
	default:
		return guard.Unknown
	}
}

// isTerminating reports whether a user deleted the namespace: its end takes bindings and
// templates along in any order, so that a template may exist a little longer.
func (e *facts) isTerminating(ctx context.Context, name string) bool {
	if name == "" {
		return false
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	err := e.live.Get(ctx, types.NamespacedName{Name: name}, namespace)
	return err == nil && namespace.GetDeletionTimestamp() != nil
}
