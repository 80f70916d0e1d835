// Package admission admits objects to the storage, with their defaults.
//
// The rules are in domain/admission. This package applies the rules in three ways, from one table
// of kinds: Plugin runs inside an API server of the same process, Webhook serves AdmissionReviews
// over HTTPS, and Configurations registers the webhook with an API server.
//
// Invariants: Plugin and Webhook return the same results. A kind without rules costs a map lookup.
// A denied request gets a 403 that names every violated rule. Only the fields that the rules
// default are changed, and unknown fields are kept.
package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // schedules contain time zones, and many images have no time zone database

	"github.com/google/uuid"
	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	rules "karmada.io/karmada/internal/domain/admission"
	"karmada.io/karmada/internal/domain/policy"
)

// Reviewer defaults and validates objects by the rules and by the state of the control plane.
type Reviewer struct {
	// Rules are the rules for all kinds.
	Rules rules.Options
	// NewID returns a new ID for a permanent-id label. Nil means random UUIDs.
	NewID func() string
	// Customizations lists the stored customizations, with which a new
	// ResourceInterpreterCustomization is compared. Nil validates each customization alone.
	Customizations Customizations
	// ClusterExists reports whether the control plane has a Cluster. Nil allows GeneratorUser of
	// package agent to write roles for clusters that exist.
	ClusterExists func(ctx context.Context, name string) (bool, error)
	// Claim returns the policy that claims a new object of any kind, so that the claim is stored
	// together with the object. ok is false if the result is not certain. Nil leaves all claims to
	// the controllers. Only the plugin calls Claim, because a webhook would have to receive every
	// object of every user.
	Claim func(ctx context.Context, kind schema.GroupVersionKind, object metav1.Object) (claim policy.Claim, ok bool)
	// EnforceQuotas is the value of the feature gate FederatedQuotaEnforcement. If Quota is nil, the
	// plugin then checks quotas with the client of its API server.
	EnforceQuotas bool
	// IsOnlyAdmission means that no other process admits objects of the control plane.
	IsOnlyAdmission bool
	// Quota checks a ResourceBinding against the quotas of its namespace and records its usage,
	// after the rules have accepted the ResourceBinding. old is nil on creation. An error with an
	// API status is returned unchanged, and any other error denies the request. Nil means no
	// quotas.
	Quota func(ctx context.Context, binding, old *workv1alpha2.ResourceBinding, dryRun bool) error
	// AgentQuotas limits the writes of the agent of a cluster. Nil means no limit. Only the plugin
	// uses AgentQuotas, because a webhook cannot verify the user of a request.
	AgentQuotas *AgentQuotas
	// LargeStatus is the value of the feature gate LargeStatus.
	LargeStatus bool
}

// DefaultRules returns rule options that enable only the validation of schedules and time zones.
func DefaultRules() rules.Options {
	return rules.Options{
		ParseSchedule: parseSchedule,
		LoadTimeZone: func(name string) error {
			if _, err := time.LoadLocation(name); err != nil {
				return fmt.Errorf("must be a time zone: %w", err)
			}
			return nil
		},
	}
}

var errOnlyTimeZone = errors.New("must be a cron expression: the time zone has no expression after it")

// parseSchedule validates a cron expression with an optional time zone. It checks first that a
// blank follows the time zone, because the parser panics otherwise.
func parseSchedule(expression string) error {
	zoned := strings.HasPrefix(expression, "TZ=") || strings.HasPrefix(expression, "CRON_TZ=")
	if zoned && !strings.Contains(expression, " ") {
		return errOnlyTimeZone
	}
	if _, err := cron.ParseStandard(expression); err != nil {
		return fmt.Errorf("must be a cron expression: %w", err)
	}
	return nil
}

// applyDefaults sets the defaults in content, which is an object of the given kind.
func (r Reviewer) applyDefaults(kind *kind, version string, content, oldContent map[string]any) error {
	object, err := kind.decode(version, content)
	if err != nil {
		return err
	}
	old, err := kind.decode(version, oldContent)
	if err != nil {
		return err
	}
	before := object.DeepCopyObject()
	if err := rules.Default(object, old, r.newID()); err != nil {
		return fmt.Errorf("defaulting the %s: %w", kind.name, err)
	}
	if kind.withoutManagedFields && oldContent == nil {
		// Store no managed fields. If an object has none on creation, the API server tracks managed
		// fields only after a server-side apply.
		unstructured.RemoveNestedField(content, "metadata", "managedFields")
	}
	return applyDiff(content, before, object)
}

// validate returns warnings. It returns an error if the object is denied.
func (r Reviewer) validate(ctx context.Context, kind *kind, version string, content, oldContent map[string]any,
	dryRun bool) ([]string, error) {
	object, err := kind.decode(version, content)
	if err != nil {
		return nil, err
	}
	old, err := kind.decode(version, oldContent)
	if err != nil {
		return nil, err
	}
	objectRules, err := r.rulesFor(ctx, object)
	if err != nil {
		return nil, err
	}
	violations, warnings := objectRules.Validate(object, old)
	if kind.notImplemented {
		warnings = notImplementedWarnings(kind, old)
	}
	if err := violations.ToAggregate(); err != nil {
		return warnings, err
	}
	return warnings, r.requireQuota(ctx, object, old, dryRun)
}

// notImplementedWarnings returns the warning for a new object that has no effect at all. It replaces
// the warnings about single fields, which suggest other fields or a feature gate: these have no effect
// either.
func notImplementedWarnings(kind *kind, old runtime.Object) []string {
	if old != nil {
		return nil
	}
	return []string{fmt.Sprintf("%s: the object is stored but has no effect: this version does not implement this kind", kind.name)}
}

// creationWarnings returns the warnings for a new object of a kind without a validating
// webhook.
func (r Reviewer) creationWarnings(kind *kind, version string, content, oldContent map[string]any) []string {
	if oldContent != nil {
		return nil
	}
	object, err := kind.decode(version, content)
	if err != nil {
		return nil
	}
	_, warnings := r.Rules.Validate(object, nil)
	return warnings
}

func (r Reviewer) requireQuota(ctx context.Context, object, old runtime.Object, dryRun bool) error {
	binding := currentBinding(object)
	if binding == nil || r.Quota == nil {
		return nil
	}
	return r.Quota(ctx, binding, currentBinding(old), dryRun)
}

// currentBinding returns a ResourceBinding of any version in the version that is stored. It returns nil
// for every other object.
func currentBinding(object runtime.Object) *workv1alpha2.ResourceBinding {
	switch binding := object.(type) {
	case *workv1alpha2.ResourceBinding:
		return binding
	case *workv1alpha1.ResourceBinding:
		return binding.ToV1alpha2()
	}
	return nil
}

func (r Reviewer) newID() func() string {
	if r.NewID != nil {
		return r.NewID
	}
	return uuid.NewString
}

// undecodableError means that an object does not match the types of its kind.
type undecodableError struct{ err error }

func (u *undecodableError) Error() string { return u.err.Error() }
func (u *undecodableError) Unwrap() error { return u.err }

func isUndecodable(err error) bool {
	var undecodable *undecodableError
	return errors.As(err, &undecodable)
}
