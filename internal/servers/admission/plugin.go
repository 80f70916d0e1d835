package admission

import (
	"context"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	rules "karmada.io/karmada/internal/domain/admission"
)

// PluginName is the name under which the plugin is registered, and by which an
// API server is told to enable it.
const PluginName = "KarmadaAdmission"

// Plugin applies the rules inside an API server, without a call over the
// network. It judges the custom resources of this project, and the deletion of
// any object.
type Plugin struct {
	*admission.Handler
	reviewer Reviewer
	kinds    map[schema.GroupResource]*kind
}

var (
	_ admission.MutationInterface            = (*Plugin)(nil)
	_ admission.ValidationInterface          = (*Plugin)(nil)
	_ initializer.WantsDynamicClient         = (*Plugin)(nil)
	_ initializer.WantsExternalKubeClientSet = (*Plugin)(nil)
)

// NewPlugin returns a plugin that answers as the reviewer does.
func NewPlugin(reviewer Reviewer) *Plugin {
	table := kinds()
	byResource := make(map[schema.GroupResource]*kind, len(table))
	for i := range table {
		byResource[table[i].resource] = &table[i]
	}
	return &Plugin{
		Handler:  admission.NewHandler(admission.Create, admission.Update, admission.Delete),
		reviewer: reviewer,
		kinds:    byResource,
	}
}

// Register makes the plugin known to an API server; it has to be enabled by
// PluginName too.
func Register(plugins *admission.Plugins, reviewer Reviewer) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return NewPlugin(reviewer), nil
	})
}

// SetDynamicClient lets the API server give the plugin a client of itself, by
// which it looks up what a kind is judged by.
func (p *Plugin) SetDynamicClient(karmada dynamic.Interface) {
	if p.reviewer.Customizations == nil {
		p.reviewer.Customizations = StoredCustomizations(karmada)
	}
	if p.reviewer.Rules.Clusters == nil {
		p.reviewer.Rules.Clusters = StoredClusters(karmada)
	}
}

// SetExternalKubeClientSet lets the API server give the plugin a client of itself,
// by which it learns which kinds are served.
func (p *Plugin) SetExternalKubeClientSet(karmada kubernetes.Interface) {
	if p.reviewer.Rules.Served == nil {
		p.reviewer.Rules.Served = ServedKinds(karmada.Discovery())
	}
}

// ValidateInitialization says that the plugin can work with whatever it was given.
func (p *Plugin) ValidateInitialization() error { return nil }

// Admit completes an object. One that is not of the form of its kind is left as
// it is: the schema that is checked next says more exactly what is wrong.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	p.claim(ctx, a)
	kind, ok := p.ruled(a)
	if !ok || !kind.mutate.asksAt(a.GetOperation()) {
		return nil
	}
	object, ok := a.GetObject().(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	err := p.reviewer.complete(kind, a.GetResource().Version, object.Object, contentOf(a.GetOldObject()))
	if err == nil || isUndecodable(err) {
		return nil
	}
	return apierrors.NewBadRequest(err.Error())
}

// claim writes on a new object which policy claims it.
func (p *Plugin) claim(ctx context.Context, a admission.Attributes) {
	if p.reviewer.Claim == nil || a.GetOperation() != admission.Create || a.GetSubresource() != "" {
		return
	}
	object, err := meta.Accessor(a.GetObject())
	if err != nil {
		return // what has no metadata has no policy
	}
	if claim, ok := p.reviewer.Claim(ctx, a.GetKind(), object); ok {
		claim.Apply(object)
	}
}

// Validate refuses what breaks a rule, and the deletion of what is protected.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Delete {
		return validateDelete(a)
	}
	if err := p.reviewer.validateAgent(a); err != nil {
		return err
	}
	kind, ok := p.ruled(a)
	if !ok {
		return nil
	}
	object, ok := a.GetObject().(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	if kind.validate == nil {
		for _, text := range p.reviewer.warnings(kind, a.GetResource().Version, object.Object, contentOf(a.GetOldObject())) {
			warning.AddWarning(ctx, "", text)
		}
		return nil
	}
	warnings, err := p.reviewer.judge(ctx, kind, a.GetResource().Version, object.Object, contentOf(a.GetOldObject()), a.IsDryRun())
	for _, text := range warnings {
		warning.AddWarning(ctx, "", text)
	}
	switch {
	case err == nil:
		return nil
	case isUnavailable(err):
		return apierrors.NewInternalError(err)
	case isUndecodable(err):
		return apierrors.NewBadRequest(err.Error())
	case apierrors.ReasonForError(err) != "":
		return err
	}
	return admission.NewForbidden(a, err)
}

// ruled returns the row of what is asked about. Subresources have no rules: they
// hold what controllers report.
func (p *Plugin) ruled(a admission.Attributes) (*kind, bool) {
	if a.GetSubresource() != "" || a.GetOperation() == admission.Delete {
		return nil, false
	}
	kind, ok := p.kinds[a.GetResource().GroupResource()]
	return kind, ok
}

func validateDelete(a admission.Attributes) error {
	if a.GetSubresource() != "" || a.GetOldObject() == nil {
		return nil
	}
	object, err := meta.Accessor(a.GetOldObject())
	if err != nil {
		return nil //nolint:nilerr // without metadata there is no label to protect it
	}
	if err := rules.Deletable(object); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// contentOf returns nil for no object, and for one that is no custom resource.
func contentOf(object runtime.Object) map[string]any {
	if u, ok := object.(*unstructured.Unstructured); ok && u != nil {
		return u.Object
	}
	return nil
}
