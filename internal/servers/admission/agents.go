package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

const agentPath = "/validate-agentquota"

// rateLimit allows a burst, and then perInterval in each interval. The zero value means no limit.
type rateLimit struct {
	burst       int
	perInterval int
	interval    time.Duration
}

func (r rateLimit) limiter() *rate.Limiter {
	if r.perInterval == 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(float64(r.perInterval)/r.interval.Seconds()), r.burst)
}

// quota limits the writes of one agent to some resources.
type quota struct {
	// resources lists the limited resources. It is empty for the quota that applies to all
	// resources without their own quota.
	resources []schema.GroupResource
	// creations limits the number of created objects. It also limits how many objects are stored,
	// because an API server deletes Events after at most an hour, and CertificateSigningRequests
	// after at most a day.
	creations rateLimit
	// bytes limits creations and updates, in bytes of JSON, because etcd keeps each revision of an
	// object until the next compaction.
	bytes rateLimit
}

// agentQuotas returns the quotas of each agent. An upstream agent that waits for its certificate
// creates a CertificateSigningRequest every 5 minutes. Each write of an Event keeps the Event for
// another hour, so the quota of bytes limits the stored Events.
func agentQuotas() []quota {
	return []quota{
		{
			resources: eventResources(),
			creations: rateLimit{burst: 500, perInterval: 1, interval: 2 * time.Second},
			bytes:     rateLimit{burst: 8 << 20, perInterval: 1 << 20, interval: time.Minute},
		},
		{
			resources: []schema.GroupResource{csrResource()},
			creations: rateLimit{burst: 10, perInterval: 1, interval: 5 * time.Minute},
		},
		{
			bytes: rateLimit{burst: 128 << 20, perInterval: 32 << 20, interval: time.Minute},
		},
	}
}

func eventResources() []schema.GroupResource {
	return []schema.GroupResource{{Group: corev1.GroupName, Resource: "events"}, {Group: eventsv1.GroupName, Resource: "events"}}
}

func csrResource() schema.GroupResource {
	return schema.GroupResource{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}
}

func workResource() schema.GroupResource {
	return schema.GroupResource{Group: workv1alpha1.GroupName, Resource: "works"}
}

// AgentQuotas limits the writes of agents. It trusts the user name in a request, so only a server
// that authenticates users may use it.
type AgentQuotas struct {
	now    func() time.Time
	quotas []quota

	mu sync.Mutex
	// limiters has one entry for each agent and quota. The number of entries is limited, because
	// the number of certificates of agents is limited.
	limiters map[limiterKey]*writeLimiters
}

// limiterKey identifies the limiters of one agent for one quota.
type limiterKey struct {
	user  string
	quota int
}

type writeLimiters struct{ creations, bytes *rate.Limiter }

// NewAgentQuotas returns quotas without any usage. now is the clock.
func NewAgentQuotas(now func() time.Time) *AgentQuotas {
	return &AgentQuotas{now: now, quotas: agentQuotas(), limiters: map[limiterKey]*writeLimiters{}}
}

// admit counts a write of an agent and returns an error if the write exceeds a quota. If there are
// too many bytes, the error has a status that makes clients wait and retry. A nil AgentQuotas
// admits all writes.
func (a *AgentQuotas) admit(user string, resource schema.GroupResource, creates bool, size int) error {
	if a == nil {
		return nil
	}
	i := slices.IndexFunc(a.quotas, func(each quota) bool {
		return len(each.resources) == 0 || slices.Contains(each.resources, resource)
	})
	quota, limiters := a.quotas[i], a.limitersFor(limiterKey{user, i})
	if creates && !limiters.creations.AllowN(a.now(), 1) {
		return fmt.Errorf("user %s created %d %s in a short time; an agent may create one every %s: try again later, and check the log of the agent for the cause",
			user, quota.creations.burst, resource.Resource, quota.creations.interval)
	}
	if delay, ok := reserveTokens(limiters.bytes, a.now(), size); !ok {
		return apierrors.NewTooManyRequests(fmt.Sprintf("user %s wrote %d MiB of %s in a short time; an agent may write %d MiB in %s: try again later, and check the log of the agent for the cause",
			user, quota.bytes.burst>>20, quota.describe(), quota.bytes.perInterval>>20, quota.bytes.interval), int(delay.Seconds())+1)
	}
	return nil
}

// reserveTokens takes n tokens from the limiter. If fewer than n tokens are available, it takes
// none and returns the time until n tokens are available.
func reserveTokens(limiter *rate.Limiter, now time.Time, n int) (time.Duration, bool) {
	reservation := limiter.ReserveN(now, n)
	delay := reservation.DelayFrom(now)
	if delay == 0 {
		return 0, true
	}
	reservation.CancelAt(now)
	return min(delay, time.Minute), false
}

func (q quota) describe() string {
	if len(q.resources) == 0 {
		return "objects"
	}
	return q.resources[0].Resource
}

func (a *AgentQuotas) limitersFor(key limiterKey) *writeLimiters {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.limiters[key] == nil {
		quota := a.quotas[key.quota]
		a.limiters[key] = &writeLimiters{creations: quota.creations.limiter(), bytes: quota.bytes.limiter()}
	}
	return a.limiters[key]
}

// validateAgent denies a write of an agent if the object is too large or a quota is exceeded. Only
// the plugin, which runs in an API server, calls it.
func (r Reviewer) validateAgent(ctx context.Context, a admission.Attributes) error {
	if a.GetUserInfo() == nil || !agent.IsAgent(a.GetUserInfo().GetName()) || a.GetObject() == nil {
		return nil
	}
	resource := a.GetResource().GroupResource()
	if err := r.validateGenerator(ctx, a.GetUserInfo().GetName(), resource, nameOf(a.GetObject())); err != nil {
		if isUnavailable(err) {
			return apierrors.NewInternalError(err)
		}
		return admission.NewForbidden(a, err)
	}
	if a.GetOldObject() != nil {
		if err := validatePushCredentials(resource, labelsOf(a.GetOldObject())); err != nil {
			return admission.NewForbidden(a, err)
		}
	}
	size, err := jsonSize(a.GetObject())
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if err := r.validateSize(resource, size, unstructuredContent(a.GetObject()), unstructuredContent(a.GetOldObject())); err != nil {
		return admission.NewForbidden(a, err)
	}
	if a.IsDryRun() {
		return nil
	}
	err = r.AgentQuotas.admit(a.GetUserInfo().GetName(), resource, a.GetOperation() == admission.Create && a.GetSubresource() == "", size)
	if err == nil || apierrors.IsTooManyRequests(err) {
		return err
	}
	return admission.NewForbidden(a, err)
}

// validateSize returns an error if an object is too large for an agent. It uses content and old only
// for Works.
func (r Reviewer) validateSize(resource schema.GroupResource, size int, content, old map[string]any) error {
	switch {
	case slices.Contains(eventResources(), resource):
		return agent.CheckObjectBytes("an Event", size)
	case resource == csrResource():
		return agent.CheckObjectBytes("a CertificateSigningRequest", size)
	case resource != workResource():
		return nil
	}
	manifests := agent.ManifestCount(content)
	if size <= agent.MaxWorkReportBytes(manifests, r.LargeStatus) {
		return nil // the report is a part of the Work, so it cannot be larger
	}
	reportSize, err := jsonSize(agent.WorkReport(content))
	if err != nil {
		return err
	}
	oldReportSize, err := jsonSize(agent.WorkReport(old))
	if err != nil {
		return err
	}
	return agent.CheckWorkReportBytes(manifests, oldReportSize, reportSize, r.LargeStatus)
}

// jsonSize returns the size of an object as JSON, which is approximately the size of the stored
// object.
func jsonSize(object any) (int, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		object = u.Object
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return 0, fmt.Errorf("encoding the object: %w", err)
	}
	return text.Len(), nil
}

// reviewAgentWrite does the same as validateAgent for the webhook, but without quotas. A webhook
// cannot verify the caller, so it must not count writes for the user in the request.
func (r Reviewer) reviewAgentWrite(httpRequest *http.Request, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	if !agent.IsAgent(request.UserInfo.Username) {
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	object, old, err := decodeObjects(request)
	if err != nil {
		return errorResponse(err)
	}
	size, err := jsonSize(object)
	if err != nil {
		return errorResponse(err)
	}
	resource := schema.GroupResource{Group: request.Resource.Group, Resource: request.Resource.Resource}
	if err := r.validateGenerator(httpRequest.Context(), request.UserInfo.Username, resource,
		nameOf(&unstructured.Unstructured{Object: object})); err != nil {
		return errorResponse(err)
	}
	if err := validatePushCredentials(resource, (&unstructured.Unstructured{Object: old}).GetLabels()); err != nil {
		return errorResponse(err)
	}
	if err := r.validateSize(resource, size, object, old); err != nil {
		return errorResponse(err)
	}
	return &admissionv1.AdmissionResponse{Allowed: true}
}

// agentWebhook returns the webhook for writes of agents. A match condition excludes all other
// users.
func agentWebhook(clientConfig ClientConfig) admissionregistrationv1.ValidatingWebhook {
	rule := func(group string, resources []string,
		operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{
			Operations: operations,
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources,
				Scope: new(admissionregistrationv1.AllScopes),
			},
		}
	}
	var rules []admissionregistrationv1.RuleWithOperations
	for _, events := range eventResources() {
		rules = append(rules, rule(events.Group, []string{events.Resource}, create, update))
	}
	requests, works, secrets := csrResource(), workResource(), secretResource()
	rules = append(rules, rule(secrets.Group, []string{secrets.Resource}, update), rule(requests.Group, []string{requests.Resource}, create),
		rule(works.Group, []string{works.Resource, works.Resource + "/status"}, update))
	for _, generated := range generatedResources() {
		rules = append(rules, rule(generated.Group, []string{generated.Resource}, create, update))
	}
	return admissionregistrationv1.ValidatingWebhook{
		Name:         clusterv1alpha1.AgentQuotaAdmission,
		ClientConfig: clientConfig(agentPath),
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "agents",
			Expression: fmt.Sprintf("request.userInfo.username.startsWith('%s')", agent.UserPrefix)}},
		Rules:                   rules,
		FailurePolicy:           new(admissionregistrationv1.Fail),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          new(int32(defaultTimeoutSeconds)),
		MatchPolicy:             new(admissionregistrationv1.Exact),
		AdmissionReviewVersions: []string{"v1"},
	}
}
