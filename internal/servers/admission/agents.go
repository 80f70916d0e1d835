package admission

import (
	"bytes"
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

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

const (
	agentEntryName = "agentquota.karmada.io"
	agentPath      = "/validate-agentquota"
)

// bound is so much at once, and then so much in each interval; the zero bound is none.
type bound struct {
	burst    int
	amount   int
	interval time.Duration
}

func (b bound) limiter() *rate.Limiter {
	if b.amount == 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(float64(b.amount)/b.interval.Seconds()), b.burst)
}

// quota bounds what one agent writes to some resources.
type quota struct {
	// resources are empty for all that no other quota has.
	resources []schema.GroupResource
	// objects bounds creations. An API server deletes Events after an hour and requests
	// for certificates after a day at the latest, so it bounds how many are stored too.
	objects bound
	// bytes bounds creations and changes, in bytes of JSON: etcd keeps each state of an
	// object until the next compaction.
	bytes bound
}

// agentQuotas are the quotas of each agent. An agent of the reference that waits for
// its certificate asks again every 5 minutes. Each write of an Event keeps the Event for
// another hour, so the quota of bytes bounds how much of them is stored.
func agentQuotas() []quota {
	return []quota{
		{
			resources: eventResources(),
			objects:   bound{burst: 500, amount: 1, interval: 2 * time.Second},
			bytes:     bound{burst: 8 << 20, amount: 1 << 20, interval: time.Minute},
		},
		{
			resources: []schema.GroupResource{requestResource()},
			objects:   bound{burst: 10, amount: 1, interval: 5 * time.Minute},
		},
		{
			bytes: bound{burst: 128 << 20, amount: 32 << 20, interval: time.Minute},
		},
	}
}

func eventResources() []schema.GroupResource {
	return []schema.GroupResource{{Group: corev1.GroupName, Resource: "events"}, {Group: eventsv1.GroupName, Resource: "events"}}
}

func requestResource() schema.GroupResource {
	return schema.GroupResource{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}
}

func workResource() schema.GroupResource {
	return schema.GroupResource{Group: workv1alpha1.GroupName, Resource: "works"}
}

// AgentQuotas counts what agents write. It trusts the name of the user, so only a server
// that authenticates users may ask it.
type AgentQuotas struct {
	now    func() time.Time
	quotas []quota

	mu sync.Mutex
	// written has one entry for each agent and quota, and no more than there are
	// certificates of agents.
	written map[writer]*written
}

// writer is one agent that writes what one quota bounds.
type writer struct {
	user  string
	quota int
}

type written struct{ objects, bytes *rate.Limiter }

// NewAgentQuotas returns quotas by which no agent has written anything; now is the
// clock.
func NewAgentQuotas(now func() time.Time) *AgentQuotas {
	return &AgentQuotas{now: now, quotas: agentQuotas(), written: map[writer]*written{}}
}

// admit counts a write of an agent and returns why it is refused. Too many bytes are an
// API status by which clients wait and try again. nil counts nothing.
func (q *AgentQuotas) admit(user string, resource schema.GroupResource, creates bool, size int) error {
	if q == nil {
		return nil
	}
	i := slices.IndexFunc(q.quotas, func(each quota) bool {
		return len(each.resources) == 0 || slices.Contains(each.resources, resource)
	})
	of, soFar := q.quotas[i], q.of(writer{user, i})
	if creates && !soFar.objects.AllowN(q.now(), 1) {
		return fmt.Errorf("user %s created %d %s in a short time; an agent may create one every %s: try again later, and see the log of the agent for why it creates so many",
			user, of.objects.burst, resource.Resource, of.objects.interval)
	}
	if delay, ok := reserve(soFar.bytes, q.now(), size); !ok {
		return apierrors.NewTooManyRequests(fmt.Sprintf("user %s wrote %d MiB of %s in a short time; an agent may write %d MiB in %s: try again later, and see the log of the agent for why it writes so much",
			user, of.bytes.burst>>20, of.describe(), of.bytes.amount>>20, of.bytes.interval), int(delay.Seconds())+1)
	}
	return nil
}

// reserve takes n out of the limiter, or nothing and returns after what time there are n.
func reserve(limiter *rate.Limiter, now time.Time, n int) (time.Duration, bool) {
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

func (q *AgentQuotas) of(by writer) *written {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.written[by] == nil {
		quota := q.quotas[by.quota]
		q.written[by] = &written{objects: quota.objects.limiter(), bytes: quota.bytes.limiter()}
	}
	return q.written[by]
}

// validateAgent refuses what an agent must not store inside an API server: an object that
// is too large, and more than the quotas allow.
func (r Reviewer) validateAgent(a admission.Attributes) error {
	if a.GetUserInfo() == nil || !agent.IsAgent(a.GetUserInfo().GetName()) || a.GetObject() == nil {
		return nil
	}
	resource := a.GetResource().GroupResource()
	size, err := sizeOf(a.GetObject())
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if err := r.checkSize(resource, size, contentOf(a.GetObject()), contentOf(a.GetOldObject())); err != nil {
		return admission.NewForbidden(a, err)
	}
	if a.IsDryRun() {
		return nil
	}
	err = r.Agents.admit(a.GetUserInfo().GetName(), resource, a.GetOperation() == admission.Create && a.GetSubresource() == "", size)
	if err == nil || apierrors.IsTooManyRequests(err) {
		return err
	}
	return admission.NewForbidden(a, err)
}

// checkSize returns why an object is too large for an agent. content and old are those of
// a Work.
func (r Reviewer) checkSize(resource schema.GroupResource, size int, content, old map[string]any) error {
	switch {
	case slices.Contains(eventResources(), resource):
		return agent.CheckObjectBytes("an Event", size)
	case resource == requestResource():
		return agent.CheckObjectBytes("a CertificateSigningRequest", size)
	case resource != workResource():
		return nil
	}
	manifests := agent.Manifests(content)
	if size <= agent.ReportBytes(manifests, r.LargeStatus) {
		return nil // the report is a part of the Work
	}
	reported, err := sizeOf(agent.Report(content))
	if err != nil {
		return err
	}
	before, err := sizeOf(agent.Report(old))
	if err != nil {
		return err
	}
	return agent.CheckReportBytes(manifests, before, reported, r.LargeStatus)
}

// sizeOf returns the size of an object as JSON, about as it is stored.
func sizeOf(object any) (int, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		object = u.Object
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return 0, fmt.Errorf("measuring the object: %w", err)
	}
	return text.Len(), nil
}

// answerAgent is validateAgent over HTTPS, without the quotas: a webhook does not know who
// asks, so it must not count what a request says of its user.
func (r Reviewer) answerAgent(_ *http.Request, question *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	if !agent.IsAgent(question.UserInfo.Username) {
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	object, old, err := contents(question)
	if err != nil {
		return refused(err)
	}
	size, err := sizeOf(object)
	if err != nil {
		return refused(err)
	}
	resource := schema.GroupResource{Group: question.Resource.Group, Resource: question.Resource.Resource}
	if err := r.checkSize(resource, size, object, old); err != nil {
		return refused(err)
	}
	return &admissionv1.AdmissionResponse{Allowed: true}
}

// agentWebhook is asked about what agents write, and about nothing by other users.
func agentWebhook(reach ClientConfig) admissionregistrationv1.ValidatingWebhook {
	rule := func(group string, resources []string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
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
	requests, works := requestResource(), workResource()
	rules = append(rules, rule(requests.Group, []string{requests.Resource}, create), rule(works.Group, []string{works.Resource, works.Resource + "/status"}, update))
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    agentEntryName,
		ClientConfig:            reach(agentPath),
		MatchConditions:         []admissionregistrationv1.MatchCondition{{Name: "agents", Expression: fmt.Sprintf("request.userInfo.username.startsWith('%s')", agent.UserPrefix)}},
		Rules:                   rules,
		FailurePolicy:           new(admissionregistrationv1.Fail),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          new(int32(defaultTimeoutSeconds)),
		MatchPolicy:             new(admissionregistrationv1.Exact),
		AdmissionReviewVersions: []string{"v1"},
	}
}
