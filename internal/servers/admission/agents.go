package admission

import (
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"karmada.io/karmada/internal/domain/agent"
)

const (
	agentEntryName = "agentquota.karmada.io"
	agentPath      = "/validate-agentquota"
)

// quota bounds how many objects of a resource one agent creates: so many at once, and
// then one in each interval. An API server deletes Events after an hour and requests
// for certificates after a day at the latest, so it also bounds how many are stored.
type quota struct {
	resources []schema.GroupResource
	burst     int
	interval  time.Duration
}

// agentQuotas are the quotas of each agent. An agent of the reference that waits for
// its certificate asks again every 5 minutes.
func agentQuotas() []quota {
	return []quota{
		{
			resources: []schema.GroupResource{{Group: corev1.GroupName, Resource: "events"}, {Group: eventsv1.GroupName, Resource: "events"}},
			burst:     500, interval: 2 * time.Second,
		},
		{
			resources: []schema.GroupResource{{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}},
			burst:     10, interval: 5 * time.Minute,
		},
	}
}

// AgentQuotas counts what agents create. Each replica of a webhook counts by itself.
type AgentQuotas struct {
	now func() time.Time

	mu sync.Mutex
	// created has one limiter for each agent and quota, and no more than there are
	// certificates of agents.
	created map[string]map[int]*rate.Limiter
}

// NewAgentQuotas returns quotas by which no agent has created anything; now is the
// clock.
func NewAgentQuotas(now func() time.Time) *AgentQuotas {
	return &AgentQuotas{now: now, created: map[string]map[int]*rate.Limiter{}}
}

// admit counts the creation of an object by a user and returns why it is refused. nil
// counts nothing.
func (q *AgentQuotas) admit(user string, resource schema.GroupResource) error {
	if q == nil || !agent.IsAgent(user) {
		return nil
	}
	quotas := agentQuotas()
	i := slices.IndexFunc(quotas, func(each quota) bool { return slices.Contains(each.resources, resource) })
	if i < 0 || q.limiter(user, i, quotas[i]).AllowN(q.now(), 1) {
		return nil
	}
	return fmt.Errorf("user %s created %d %s in a short time; an agent may create one every %s: try again later, and see the log of the agent for why it creates so many",
		user, quotas[i].burst, resource.Resource, quotas[i].interval)
}

func (q *AgentQuotas) limiter(user string, i int, of quota) *rate.Limiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.created[user] == nil {
		q.created[user] = map[int]*rate.Limiter{}
	}
	if q.created[user][i] == nil {
		q.created[user][i] = rate.NewLimiter(rate.Every(of.interval), of.burst)
	}
	return q.created[user][i]
}

// validateQuota is admit inside an API server.
func (q *AgentQuotas) validateQuota(a admission.Attributes) error {
	if q == nil || a.GetOperation() != admission.Create || a.GetSubresource() != "" || a.IsDryRun() || a.GetUserInfo() == nil {
		return nil
	}
	if err := q.admit(a.GetUserInfo().GetName(), a.GetResource().GroupResource()); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// answer is admit over HTTPS.
func (q *AgentQuotas) answer(_ *http.Request, question *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	if question.Operation != admissionv1.Create || question.SubResource != "" || question.DryRun != nil && *question.DryRun {
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	resource := schema.GroupResource{Group: question.Resource.Group, Resource: question.Resource.Resource}
	if err := q.admit(question.UserInfo.Username, resource); err != nil {
		return refused(err)
	}
	return &admissionv1.AdmissionResponse{Allowed: true}
}

// agentWebhook is asked about what agents create, and about nothing by other users.
func agentWebhook(reach ClientConfig) admissionregistrationv1.ValidatingWebhook {
	var rules []admissionregistrationv1.RuleWithOperations
	for _, each := range agentQuotas() {
		for _, resource := range each.resources {
			rules = append(rules, admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{resource.Group}, APIVersions: []string{"*"}, Resources: []string{resource.Resource},
					Scope: new(admissionregistrationv1.AllScopes),
				},
			})
		}
	}
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    agentEntryName,
		ClientConfig:            reach(agentPath),
		MatchConditions:         []admissionregistrationv1.MatchCondition{{Name: "agents", Expression: fmt.Sprintf("request.userInfo.username.startsWith('%s')", agent.UserPrefix)}},
		Rules:                   rules,
		FailurePolicy:           new(admissionregistrationv1.Fail),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNoneOnDryRun),
		TimeoutSeconds:          new(int32(defaultTimeoutSeconds)),
		MatchPolicy:             new(admissionregistrationv1.Exact),
		AdmissionReviewVersions: []string{"v1"},
	}
}
