package agentcsrapproving

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

// open tells whether something is still to be done about a request. One that is
// left to people is theirs: who asked may long have gone.
func open(csr *certificatesv1.CertificateSigningRequest) bool {
	approved := condition(csr, certificatesv1.CertificateApproved)
	if condition(csr, certificatesv1.CertificateDenied) != nil || condition(csr, certificatesv1.CertificateFailed) != nil {
		return false
	}
	if approved != nil {
		return byPeople(approved) && condition(csr, agent.RightsGranted) == nil
	}
	return len(csr.Status.Certificate) == 0 && condition(csr, agent.NotApproved) == nil
}

// byPeople tells whether a person has approved. Who approves automatically has
// granted the rights before.
func byPeople(approved *certificatesv1.CertificateSigningRequestCondition) bool {
	return approved.Reason != agent.ReasonAutoApproved
}

func condition(csr *certificatesv1.CertificateSigningRequest, of certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequestCondition {
	i := slices.IndexFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == of })
	if i < 0 {
		return nil
	}
	return &csr.Status.Conditions[i]
}

// refused tells whether a request is left to people who have not answered it.
func refused(csr *certificatesv1.CertificateSigningRequest) bool {
	return condition(csr, agent.NotApproved) != nil && len(csr.Status.Certificate) == 0 &&
		condition(csr, certificatesv1.CertificateApproved) == nil && condition(csr, certificatesv1.CertificateDenied) == nil &&
		condition(csr, certificatesv1.CertificateFailed) == nil
}

// handle answers a request, or deletes one that was refused when its time is over.
func (r *reconciler) handle(ctx context.Context, name string) (again time.Duration, err error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	exists, err := r.read(ctx, client.ObjectKey{Name: name}, csr)
	switch {
	case err != nil || !exists:
		return 0, err
	case open(csr):
		return soon(r.answer(ctx, csr))
	case refused(csr):
		return r.forget(ctx, csr)
	}
	return 0, nil
}

// forget deletes a refused request that is old enough, and tells when it will be.
func (r *reconciler) forget(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (again time.Duration, err error) {
	if left := csr.CreationTimestamp.Add(refusedLife).Sub(r.now()); left > 0 {
		return left, nil
	}
	// A person may be about to approve it.
	if err := r.karmada.Delete(ctx, csr, client.Preconditions{UID: &csr.UID, ResourceVersion: &csr.ResourceVersion}); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("deleting CertificateSigningRequest %q, which was refused: %w", csr.Name, err)
	}
	return 0, nil
}

// answer approves a request, or says why it is left to people.
func (r *reconciler) answer(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (wait bool, err error) {
	request, ok := agent.Recognize(csr)
	if !ok {
		return false, nil
	}
	facts, err := r.facts(ctx, csr, request)
	if err != nil {
		return false, err
	}
	if condition(csr, certificatesv1.CertificateApproved) != nil {
		return r.followPeople(ctx, csr, request, facts)
	}
	decision := agent.Decide(request, facts)
	switch {
	case decision.Wait:
		return true, nil
	case !decision.Approved:
		return false, r.refuse(ctx, csr, decision)
	}
	switch {
	case request.Generator:
	case decision.Renewal:
		wait, err = r.keepRights(ctx, request.Cluster)
	default:
		wait, err = r.grant(ctx, recordOf(csr, request, facts))
	}
	if err != nil || wait {
		return wait, err
	}
	return false, r.approve(ctx, csr, request, decision)
}

// facts reads what the decision needs to know.
func (r *reconciler) facts(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, request agent.Request) (agent.Facts, error) {
	facts := agent.Facts{Request: csr.UID}
	if err := r.askAuthorizer(ctx, csr, request, &facts); err != nil || request.Generator || !agent.ValidName(request.Cluster) {
		return facts, err
	}
	for _, name := range agent.ReadableSecrets(request.Cluster) {
		cluster := clusterv1alpha1.Cluster{}
		exists, err := r.read(ctx, client.ObjectKey{Name: name}, &cluster)
		if err != nil {
			return facts, err
		}
		if exists {
			facts.Clusters = append(facts.Clusters, cluster)
		}
	}
	role := &rbacv1.ClusterRole{}
	exists, err := r.read(ctx, client.ObjectKey{Name: agent.RoleName(request.Cluster)}, role)
	if err != nil {
		return facts, err
	}
	if exists {
		facts.Role = role
	}
	namespace := &corev1.Namespace{}
	if exists, err = r.read(ctx, client.ObjectKey{Name: request.ClusterNamespace}, namespace); exists {
		facts.ClusterNamespace = namespace
	}
	return facts, err
}

// askAuthorizer finds out what the requester may do, and what the Generator may.
func (r *reconciler) askAuthorizer(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, request agent.Request, facts *agent.Facts) (err error) {
	requester := authorizationv1.SubjectAccessReviewSpec{User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups, Extra: extra(csr.Spec.Extra)}
	create := func(subresource string) *authorizationv1.ResourceAttributes {
		return &authorizationv1.ResourceAttributes{
			Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Verb: "create", Subresource: subresource,
		}
	}
	if request.Generator {
		if facts.GeneratorUnlimited, err = r.generatorUnlimited(ctx); err != nil {
			return err
		}
	}
	if request.Renewal() {
		if facts.MayRenew, err = r.allowed(ctx, requester, create(agent.ApproveSelf)); err != nil || facts.MayRenew {
			return err
		}
	}
	facts.MayRegister, err = r.allowed(ctx, requester, create(agent.ApproveAny))
	return err
}

// generatorUnlimited tells whether the Generator may do everything: because a role
// says so, or because it may make any role and no admission policy bounds it.
func (r *reconciler) generatorUnlimited(ctx context.Context) (bool, error) {
	generator := authorizationv1.SubjectAccessReviewSpec{User: agent.Generator, Groups: []string{agent.Group, "system:authenticated"}}
	everything, err := r.allowed(ctx, generator, &authorizationv1.ResourceAttributes{Group: "*", Resource: "*", Verb: "*"})
	if err != nil || everything {
		return everything, err
	}
	anyRole, err := r.allowed(ctx, generator, &authorizationv1.ResourceAttributes{Group: rbacv1.GroupName, Resource: "clusterroles", Verb: "escalate"})
	if err != nil || !anyRole {
		return false, err
	}
	for _, bound := range []client.Object{&admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}} {
		if exists, err := r.read(ctx, client.ObjectKey{Name: agent.GeneratorPolicy}, bound); err != nil || !exists {
			return !exists, err
		}
	}
	return false, nil
}

func (r *reconciler) allowed(ctx context.Context, who authorizationv1.SubjectAccessReviewSpec, what *authorizationv1.ResourceAttributes) (bool, error) {
	who.ResourceAttributes = what
	review := &authorizationv1.SubjectAccessReview{Spec: who}
	if err := r.karmada.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking what user %q may do: %w", who.User, err)
	}
	return review.Status.Allowed, nil
}

func extra(of map[string]certificatesv1.ExtraValue) map[string]authorizationv1.ExtraValue {
	converted := make(map[string]authorizationv1.ExtraValue, len(of))
	for key, values := range of {
		converted[key] = authorizationv1.ExtraValue(values)
	}
	return converted
}

// followPeople gives an agent its rights whose certificate a person has approved.
func (r *reconciler) followPeople(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, request agent.Request, facts agent.Facts) (wait bool, err error) {
	if request.Generator || !agent.ValidName(request.Cluster) {
		return false, nil
	}
	if wait, err := r.grant(ctx, recordOf(csr, request, facts)); err != nil || wait {
		return wait, err
	}
	r.addCondition(csr, agent.RightsGranted, "ApprovedByOthers", "Granting the rights of the agent, whose certificate was approved by others.")
	return false, r.writeStatus(ctx, csr)
}

func (r *reconciler) approve(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, request agent.Request, decision agent.Decision) error {
	r.addCondition(csr, certificatesv1.CertificateApproved, decision.Reason, decision.Message)
	if err := r.karmada.SubResource("approval").Update(ctx, csr); err != nil {
		return fmt.Errorf("approving the certificate of %s: %w", request.User(), err)
	}
	ctrllog.FromContext(ctx).Info("approved the certificate of an agent", "user", request.User(), "requester", request.Requester)
	return nil
}

func (r *reconciler) refuse(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, decision agent.Decision) error {
	r.addCondition(csr, agent.NotApproved, decision.Reason, decision.Message)
	if err := r.writeStatus(ctx, csr); err != nil {
		return err
	}
	r.events.Failed(csr, decision.Reason, fmt.Errorf("not approved automatically: %s", decision.Message))
	return nil
}

func (r *reconciler) addCondition(csr *certificatesv1.CertificateSigningRequest, of certificatesv1.RequestConditionType, reason, message string) {
	now := metav1.NewTime(r.now())
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: of, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now,
	})
}

func (r *reconciler) writeStatus(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	if err := r.karmada.Status().Update(ctx, csr); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of CertificateSigningRequest %q: %w", csr.Name, err)
	}
	return nil
}
