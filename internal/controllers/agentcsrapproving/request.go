package agentcsrapproving

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

// needsPass reports whether the controller still has to process the request. It returns false for a
// request that the controller declined to approve. Approving it automatically later would be useless,
// because the requester may no longer wait.
func needsPass(csr *certificatesv1.CertificateSigningRequest) bool {
	approved := findCondition(csr, certificatesv1.CertificateApproved)
	if findCondition(csr, certificatesv1.CertificateDenied) != nil || findCondition(csr, certificatesv1.CertificateFailed) != nil {
		return false
	}
	if approved != nil {
		return approved.Reason != clusterv1alpha1.AgentReasonAutoApproved && findCondition(csr, agent.ConditionPermissionsGranted) == nil
	}
	return len(csr.Status.Certificate) == 0 && findCondition(csr, agent.ConditionNotApproved) == nil
}

func findCondition(csr *certificatesv1.CertificateSigningRequest,
	conditionType certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequestCondition {
	i := slices.IndexFunc(csr.Status.Conditions,
		func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &csr.Status.Conditions[i]
}

// awaitsManualDecision reports whether the request waits for a user to approve it.
func awaitsManualDecision(csr *certificatesv1.CertificateSigningRequest) bool {
	return findCondition(csr, agent.ConditionNotApproved) != nil && len(csr.Status.Certificate) == 0 &&
		findCondition(csr, certificatesv1.CertificateApproved) == nil && findCondition(csr, certificatesv1.CertificateDenied) == nil &&
		findCondition(csr, certificatesv1.CertificateFailed) == nil
}

// processRequest decides about the request, or deletes it if the period for a manual decision is over.
func (r *reconciler) processRequest(ctx context.Context, name string) (requeueAfter time.Duration, err error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	exists, err := r.readLive(ctx, client.ObjectKey{Name: name}, csr)
	switch {
	case err != nil || !exists:
		return 0, err
	case needsPass(csr):
		return requeueSoon(r.decideRequest(ctx, csr))
	case awaitsManualDecision(csr):
		return r.deleteIfExpired(ctx, csr)
	}
	return 0, nil
}

// deleteIfExpired deletes a request whose period for a manual decision is over. Otherwise it returns
// the remaining time.
func (r *reconciler) deleteIfExpired(ctx context.Context,
	csr *certificatesv1.CertificateSigningRequest) (requeueAfter time.Duration, err error) {
	if remaining := csr.CreationTimestamp.Add(manualDecisionPeriod).Sub(r.now()); remaining > 0 {
		return remaining, nil
	}
	// Set preconditions, because a user may approve the request at the same time.
	if err := r.karmada.Delete(ctx, csr, client.Preconditions{UID: &csr.UID,
		ResourceVersion: &csr.ResourceVersion}); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("deleting CertificateSigningRequest %q, which was not approved: %w", csr.Name, err)
	}
	return 0, nil
}

// decideRequest approves the request, or records why it needs a manual approval.
func (r *reconciler) decideRequest(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (wait bool, err error) {
	request, ok := agent.RecognizeRequest(csr)
	if !ok {
		return false, nil
	}
	facts, err := r.readFacts(ctx, csr, request)
	if err != nil {
		return false, err
	}
	if findCondition(csr, certificatesv1.CertificateApproved) != nil {
		return r.grantManuallyApproved(ctx, csr, request, facts)
	}
	decision := agent.DecideRequest(request, facts)
	switch {
	case decision.Wait:
		return true, nil
	case !decision.Approved:
		return false, r.leaveForManualApproval(ctx, csr, decision)
	}
	switch {
	case request.Generator:
	case decision.Renewal:
		wait, err = r.ensurePermissions(ctx, request.Cluster)
	default:
		wait, err = r.grantPermissions(ctx, newAgentRecord(csr, request, facts))
	}
	if err != nil || wait {
		return wait, err
	}
	return false, r.approve(ctx, csr, request, decision)
}

// readFacts reads the objects and permissions on which the decision depends.
func (r *reconciler) readFacts(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	request agent.Request) (agent.RequestFacts, error) {
	facts := agent.RequestFacts{Request: csr.UID, Age: r.now().Sub(csr.CreationTimestamp.Time)}
	if err := r.readScope(ctx, csr, &facts); err != nil {
		return facts, err
	}
	if err := r.reviewPermissions(ctx, csr, request, &facts); err != nil || request.Generator || !agent.IsValidName(request.Cluster) {
		return facts, err
	}
	var err error
	if facts.Clusters, err = r.readClusters(ctx, request.Cluster); err != nil {
		return facts, err
	}
	role := &rbacv1.ClusterRole{}
	exists, err := r.readLive(ctx, client.ObjectKey{Name: agent.RoleName(request.Cluster)}, role)
	if err != nil {
		return facts, err
	}
	if exists {
		facts.Role = role
	}
	namespace := &corev1.Namespace{}
	if exists, err = r.readLive(ctx, client.ObjectKey{Name: request.ClusterNamespace}, namespace); exists {
		facts.ClusterNamespace = namespace
	}
	return facts, err
}

// readClusters returns the Clusters whose name is the given name, or is the name of a Secret that the
// cluster's agent can read.
func (r *reconciler) readClusters(ctx context.Context, name string) (clusters []clusterv1alpha1.Cluster, err error) {
	for _, name := range agent.ReadableSecrets(name) {
		cluster := clusterv1alpha1.Cluster{}
		exists, err := r.readLive(ctx, client.ObjectKey{Name: name}, &cluster)
		if err != nil {
			return nil, err
		}
		if exists {
			clusters = append(clusters, cluster)
		}
	}
	return clusters, nil
}

// readScope reads the scope of the requester's token if the token has one.
func (r *reconciler) readScope(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, facts *agent.RequestFacts) error {
	facts.IsScoped = slices.Contains(csr.Spec.Groups, agent.ScopedGroup)
	id, ok := strings.CutPrefix(csr.Spec.Username, bootstrapapi.BootstrapUserPrefix)
	if !facts.IsScoped || !ok {
		return nil
	}
	token := &corev1.Secret{}
	exists, err := r.readLive(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: bootstrapapi.BootstrapTokenSecretPrefix + id},
		token)
	if err != nil || !exists {
		return err
	}
	scope, err := agent.ParseScope(token.Annotations[clusterv1alpha1.RegistrationScopeAnnotation])
	if err == nil && !scope.IsEmpty() {
		facts.Scope = &scope
	}
	return nil // the decision reports an unknown scope
}

// reviewPermissions reviews the requester's permissions and, if the request is for GeneratorUser's
// certificate, also GeneratorUser's permissions.
func (r *reconciler) reviewPermissions(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, request agent.Request,
	facts *agent.RequestFacts) (err error) {
	requester := authorizationv1.SubjectAccessReviewSpec{User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups,
		Extra: convertExtra(csr.Spec.Extra)}
	create := func(subresource string) *authorizationv1.ResourceAttributes {
		return &authorizationv1.ResourceAttributes{
			Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Verb: "create", Subresource: subresource,
		}
	}
	if request.Generator {
		if facts.GeneratorUnlimited, err = r.isGeneratorUnlimited(ctx); err != nil {
			return err
		}
	}
	if request.IsRenewal() {
		if facts.CanRenew, err = r.isAllowed(ctx, requester, create(agent.ApproveSelf)); err != nil || facts.CanRenew {
			return err
		}
	}
	facts.CanRegister, err = r.isAllowed(ctx, requester, create(agent.ApproveAny))
	return err
}

// isGeneratorUnlimited reports whether GeneratorUser may do everything, because a role permits
// everything, or because GeneratorUser may create any role and no admission policy limits this.
func (r *reconciler) isGeneratorUnlimited(ctx context.Context) (bool, error) {
	generator := authorizationv1.SubjectAccessReviewSpec{User: agent.GeneratorUser, Groups: []string{agent.Group, "system:authenticated"}}
	mayDoEverything, err := r.isAllowed(ctx, generator, &authorizationv1.ResourceAttributes{Group: "*", Resource: "*", Verb: "*"})
	if err != nil || mayDoEverything {
		return mayDoEverything, err
	}
	mayCreateAnyRole, err := r.isAllowed(ctx, generator,
		&authorizationv1.ResourceAttributes{Group: rbacv1.GroupName, Resource: "clusterroles", Verb: "escalate"})
	if err != nil || !mayCreateAnyRole {
		return false, err
	}
	for _, policy := range []client.Object{&admissionregistrationv1.ValidatingAdmissionPolicy{},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{}} {
		if exists, err := r.readLive(ctx, client.ObjectKey{Name: agent.GeneratorPolicy}, policy); err != nil || !exists {
			return !exists, err
		}
	}
	return false, nil
}

func (r *reconciler) isAllowed(ctx context.Context, subject authorizationv1.SubjectAccessReviewSpec,
	attributes *authorizationv1.ResourceAttributes) (bool, error) {
	subject.ResourceAttributes = attributes
	review := &authorizationv1.SubjectAccessReview{Spec: subject}
	if err := r.karmada.Create(ctx, review); err != nil {
		return false, fmt.Errorf("reviewing the permissions of user %q: %w", subject.User, err)
	}
	return review.Status.Allowed, nil
}

func convertExtra(extra map[string]certificatesv1.ExtraValue) map[string]authorizationv1.ExtraValue {
	converted := make(map[string]authorizationv1.ExtraValue, len(extra))
	for key, values := range extra {
		converted[key] = authorizationv1.ExtraValue(values)
	}
	return converted
}

// grantManuallyApproved grants the permissions of an agent whose certificate a user approved.
func (r *reconciler) grantManuallyApproved(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, request agent.Request,
	facts agent.RequestFacts) (wait bool, err error) {
	if request.Generator || !agent.IsValidName(request.Cluster) {
		return false, nil
	}
	if wait, err := r.grantPermissions(ctx, newAgentRecord(csr, request, facts)); err != nil || wait {
		return wait, err
	}
	csr.Status.Conditions = slices.DeleteFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == clusterv1alpha1.FormerAgentPermissionsGranted
	})
	r.addCondition(csr, agent.ConditionPermissionsGranted, clusterv1alpha1.AgentReasonApprovedByOthers,
		"The agent got its permissions, because an administrator approved its certificate.")
	return false, r.writeStatus(ctx, csr)
}

func (r *reconciler) approve(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, request agent.Request,
	decision agent.Decision) error {
	r.addCondition(csr, certificatesv1.CertificateApproved, decision.Reason, decision.Message)
	if err := r.karmada.SubResource("approval").Update(ctx, csr); err != nil {
		return fmt.Errorf("approving the certificate of %s: %w", request.User(), err)
	}
	ctrllog.FromContext(ctx).Info("approved the certificate of an agent", "user", request.User(), "requester", request.Requester)
	return nil
}

func (r *reconciler) leaveForManualApproval(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	decision agent.Decision) error {
	r.addCondition(csr, agent.ConditionNotApproved, decision.Reason, decision.Message)
	if err := r.writeStatus(ctx, csr); err != nil {
		return err
	}
	r.events.RecordFailure(csr, decision.Reason, fmt.Errorf("not approved automatically: %s", decision.Message))
	return nil
}

func (r *reconciler) addCondition(csr *certificatesv1.CertificateSigningRequest, conditionType certificatesv1.RequestConditionType, reason,
	message string) {
	now := metav1.NewTime(r.now())
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: conditionType, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now,
	})
}

func (r *reconciler) writeStatus(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	if err := r.karmada.Status().Update(ctx, csr); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of CertificateSigningRequest %q: %w", csr.Name, err)
	}
	return nil
}
