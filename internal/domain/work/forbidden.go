package work

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// MissingRule is an RBAC rule that Karmada needs in a member but was not granted.
type MissingRule struct {
	// User is the user to whom the rule is not granted.
	User string
	// Verb, Group, Resource and Namespace are the fields of the rule. Namespace is empty for all
	// namespaces.
	Verb, Group, Resource, Namespace string
}

// deniedPattern matches the message with which Kubernetes' RBAC authorizer rejects a request. Quotas
// and admission plugins also respond with code 403, but with other messages.
var deniedPattern = regexp.MustCompile(`User "([^"]+)" cannot ([a-z]+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?`)

// ParseMissingRule parses the missing rule from a member's error message. ok is false if the message
// does not contain a missing rule.
func ParseMissingRule(message string) (rule MissingRule, ok bool) {
	found := deniedPattern.FindStringSubmatch(message)
	if found == nil {
		return MissingRule{}, false
	}
	return MissingRule{User: found[1], Verb: found[2], Resource: found[3], Group: found[4], Namespace: found[5]}, true
}

// String describes the rule with the verb, resource and API group that a role needs.
func (m MissingRule) String() string {
	where := ""
	if m.Namespace != "" {
		where = fmt.Sprintf(" in namespace %s", m.Namespace)
	}
	return fmt.Sprintf("{apiGroups: [%q], resources: [%q], verbs: [%q]}%s", m.Group, m.Resource, m.Verb, where)
}

// ForbiddenError is a member's error that occurred because Karmada needs an RBAC rule there.
type ForbiddenError struct {
	Rule MissingRule
	// role is the ClusterRole that limits Karmada's permissions in the member. It is empty if the role
	// is unknown.
	role string
	err  error
}

// Error implements error.
func (f *ForbiddenError) Error() string {
	where := "a role of " + f.Rule.User
	if account, ok := strings.CutPrefix(f.Rule.User, "system:serviceaccount:"); ok {
		where = "a role of ServiceAccount " + strings.Replace(account, ":", "/", 1)
	}
	if f.role != "" {
		where = "ClusterRole " + f.role
	}
	return fmt.Sprintf("%v; Karmada may not do that in the cluster: add %s to %s there", f.err, f.Rule, where)
}

// Unwrap returns the member's error.
func (f *ForbiddenError) Unwrap() error { return f.err }

// ExplainForbidden adds the missing rule to each failure that a missing rule caused. role is the
// ClusterRole that limits Karmada's permissions in the member. It is empty if the role is unknown.
func ExplainForbidden(failures []error, role string) []error {
	explained := make([]error, len(failures))
	for i, failure := range failures {
		explained[i] = failure
		if !apierrors.IsForbidden(failure) {
			continue
		}
		if rule, ok := ParseMissingRule(failure.Error()); ok {
			explained[i] = &ForbiddenError{Rule: rule, role: role, err: failure}
		}
	}
	return explained
}

// StatusCollectedCondition returns the condition that reports whether the objects' statuses are
// collected from the cluster. denials are the reasons why some kinds cannot be watched in the cluster.
// The caller sets the transition time.
func StatusCollectedCondition(work *workv1alpha1.Work, denials []error) metav1.Condition {
	condition := metav1.Condition{
		Type: workv1alpha1.WorkStatusCollected, Status: metav1.ConditionTrue, ObservedGeneration: work.Generation,
		Reason: workv1alpha1.WorkStatusCollectedReason, Message: "The objects are watched in the cluster",
	}
	if len(denials) > 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, workv1alpha1.WorkMemberForbidsReason
		condition.Message = conditions.LimitMessage(fmt.Sprintf("The status of objects is not read, and changes in the cluster are not undone: %v", utilerrors.NewAggregate(denials)))
	}
	return condition
}

// isForbidden reports whether a missing rule caused any of the failures.
func isForbidden(failures []error) bool {
	for _, failure := range failures {
		if forbidden := (*ForbiddenError)(nil); errors.As(failure, &forbidden) {
			return true
		}
	}
	return false
}
