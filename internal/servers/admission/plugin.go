package admission

import (
	"context"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"karmada.io/karmada/internal/access/quotas"
	rules "karmada.io/karmada/internal/domain/admission"
)

// PluginName is the name under which the plugin is registered and enabled.
const PluginName = "KarmadaAdmission"

// Plugin applies the rules inside an API server, without network calls. It handles the custom
// resources of this project, and the deletion of any object.
type Plugin struct {
	*admission.Handler
	reviewer Reviewer
	kinds    map[schema.GroupResource]*kind
	// quotas enforces the quotas of the API server until drained is closed. Both may be nil.
	quotas  *quotas.Enforcer
	drained <-chan struct{}
}

var (
	_ admission.MutationInterface            = (*Plugin)(nil)
	_ admission.ValidationInterface          = (*Plugin)(nil)
	_ initializer.WantsDynamicClient         = (*Plugin)(nil)
	_ initializer.WantsExternalKubeClientSet = (*Plugin)(nil)
	_ initializer.WantsDrainedNotification   = (*Plugin)(nil)
)

// NewPlugin returns a plugin that uses the reviewer.
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

// Register registers the plugin with an API server. The plugin must also be enabled by the name
// PluginName.
func Register(plugins *admission.Plugins, reviewer Reviewer) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return NewPlugin(reviewer), nil
	})
}

// SetDynamicClient implements initializer.WantsDynamicClient. The plugin uses the client of the
// API server to read stored customizations and clusters.
func (p *Plugin) SetDynamicClient(karmada dynamic.Interface) {
	if p.reviewer.Customizations == nil {
		p.reviewer.Customizations = StoredCustomizations(karmada)
	}
	if p.reviewer.ClusterExists == nil {
		p.reviewer.ClusterExists = StoredClusterExists(karmada)
	}
	if p.reviewer.Rules.ClusterNames == nil {
		p.reviewer.Rules.ClusterNames = StoredClusters(karmada)
	}
	if p.reviewer.Quota == nil && p.reviewer.EnforceQuotas {
		p.quotas = quotas.NewEnforcer(karmada, p.reviewer.IsOnlyAdmission, time.Now)
		p.reviewer.Quota = p.quotas.Check
	}
}

// SetDrainedNotification implements initializer.WantsDrainedNotification. The channel is closed when the
// API server has completed all requests.
func (p *Plugin) SetDrainedNotification(drained <-chan struct{}) { p.drained = drained }

// SetExternalKubeClientSet implements initializer.WantsExternalKubeClientSet. The plugin uses the
// client of the API server to discover the served kinds.
func (p *Plugin) SetExternalKubeClientSet(karmada kubernetes.Interface) {
	if p.reviewer.Rules.ServedKinds == nil {
		p.reviewer.Rules.ServedKinds = ServedKinds(karmada.Discovery())
	}
}

// ValidateInitialization implements admission.InitializationValidator. It starts the watches of the
// plugin. It never returns an error, because all clients are optional.
func (p *Plugin) ValidateInitialization() error {
	if p.quotas != nil {
		go p.quotas.Run(wait.ContextForChannel(p.drained))
	}
	return nil
}

// Admit sets the defaults of an object. If the object cannot be decoded, Admit does not change it,
// because the schema validation that follows returns a more exact error.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	p.applyClaim(ctx, a)
	kind, ok := p.kindFor(a)
	if !ok || !kind.mutate.handles(a.GetOperation()) {
		return nil
	}
	object, ok := a.GetObject().(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	err := p.reviewer.applyDefaults(kind, a.GetResource().Version, object.Object, unstructuredContent(a.GetOldObject()))
	if err == nil || isUndecodable(err) {
		return nil
	}
	return apierrors.NewBadRequest(err.Error())
}

// applyClaim adds the claim of a policy to a new object.
func (p *Plugin) applyClaim(ctx context.Context, a admission.Attributes) {
	if p.reviewer.Claim == nil || a.GetOperation() != admission.Create || a.GetSubresource() != "" {
		return
	}
	object, err := meta.Accessor(a.GetObject())
	if err != nil {
		return // only objects with metadata can be claimed
	}
	if claim, ok := p.reviewer.Claim(ctx, a.GetKind(), object); ok {
		claim.Apply(object)
	}
}

// Validate denies objects that violate a rule. It also denies the deletion of protected objects.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Delete {
		return validateDelete(a)
	}
	if err := p.reviewer.validateAgent(ctx, a); err != nil {
		return err
	}
	kind, ok := p.kindFor(a)
	if !ok {
		return nil
	}
	object, ok := a.GetObject().(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	if kind.validate == nil {
		for _, text := range p.reviewer.creationWarnings(kind, a.GetResource().Version, object.Object, unstructuredContent(a.GetOldObject())) {
			warning.AddWarning(ctx, "", text)
		}
		return nil
	}
	warnings, err := p.reviewer.validate(ctx, kind, a.GetResource().Version, object.Object, unstructuredContent(a.GetOldObject()),
		a.IsDryRun())
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

// kindFor returns the table row for the kind of a request. Subresources have no rules, because
// controllers write them.
func (p *Plugin) kindFor(a admission.Attributes) (*kind, bool) {
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
		return nil //nolint:nilerr // an object without metadata has no protection label
	}
	if err := rules.CheckDeletionProtection(object); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// unstructuredContent returns the content of a custom resource. It returns nil for all other
// objects, and if there is no object.
func unstructuredContent(object runtime.Object) map[string]any {
	if u, ok := object.(*unstructured.Unstructured); ok && u != nil {
		return u.Object
	}
	return nil
}
