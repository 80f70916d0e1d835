// Package admission answers the API server's question: may this be stored, and
// as what?
//
// The rules are in domain/admission; here are three ways to ask for them, all
// from one table of kinds: Plugin runs inside an API server that is in the same
// process, Webhook answers over HTTPS, and Configurations tells an API server
// which questions to send there.
//
// Invariants: all ways give the same answers; a kind without rules costs a map
// lookup; a refusal is a 403 that names every broken rule; only the fields that
// the rules complete are changed, whatever else the object holds.
package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // images and small machines hold no time zones, and schedules name them

	"github.com/google/uuid"
	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	rules "karmada.io/karmada/internal/domain/admission"
	"karmada.io/karmada/internal/domain/policy"
)

// Reviewer reviews objects by the rules, and by what the rules cannot know of.
type Reviewer struct {
	// Rules for all kinds.
	Rules rules.Rules
	// NewID returns a new permanent id; nil means random UUIDs.
	NewID func() string
	// Customizations are looked up to judge a ResourceInterpreterCustomization;
	// nil means that each is judged alone.
	Customizations Customizations
	// Claim tells which policy claims an object of any kind that is being created,
	// so that the claim is stored along with it; ok is false when that is not
	// certain. nil leaves all claims to the controllers. Only the plugin asks: a
	// webhook would have to be asked about every object of every user.
	Claim func(ctx context.Context, kind schema.GroupVersionKind, object metav1.Object) (claim policy.Claim, ok bool)
	// Quota checks a ResourceBinding against the quotas of its namespace and
	// accounts for it, after the rules have let it pass; nil means no quotas. old
	// is nil on creation. An error that carries an API status is passed on as it
	// is, others refuse the request.
	Quota func(ctx context.Context, binding, old *workv1alpha2.ResourceBinding, dryRun bool) error
	// Agents bounds how much the agent of a cluster writes; nil means no bound. Only the
	// plugin asks: a webhook does not know the user of a request for certain.
	Agents *AgentQuotas
	// LargeStatus is the feature gate of that name.
	LargeStatus bool
}

// StandardRules are the zero rules with the checks of schedules and time zones.
func StandardRules() rules.Rules {
	return rules.Rules{
		ParseSchedule: parseSchedule,
		LoadTimeZone: func(name string) error {
			if _, err := time.LoadLocation(name); err != nil {
				return fmt.Errorf("must be a time zone: %w", err)
			}
			return nil
		},
	}
}

var errOnlyTimeZone = errors.New("must be a cron expression: nothing follows the time zone")

// parseSchedule wants a cron expression, which may begin with a time zone. The
// parser counts on a blank behind the zone and panics without one.
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

// complete defaults content, an object of that kind, in place.
func (r Reviewer) complete(kind *kind, version string, content, oldContent map[string]any) error {
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
		return fmt.Errorf("completing the %s: %w", kind.name, err)
	}
	if kind.untracked && oldContent == nil {
		// An API server tracks the owners of fields only of objects that had some
		// when they were created, or that somebody applies.
		unstructured.RemoveNestedField(content, "metadata", "managedFields")
	}
	return transplant(content, before, object)
}

// judge returns warnings, and an error when the object is refused.
func (r Reviewer) judge(ctx context.Context, kind *kind, version string, content, oldContent map[string]any, dryRun bool) ([]string, error) {
	object, err := kind.decode(version, content)
	if err != nil {
		return nil, err
	}
	old, err := kind.decode(version, oldContent)
	if err != nil {
		return nil, err
	}
	judge, err := r.rulesFor(ctx, object)
	if err != nil {
		return nil, err
	}
	broken, warnings := judge.Validate(object, old)
	if kind.unattended && old == nil {
		warnings = append(warnings, fmt.Sprintf("%s: it is stored, and nothing follows: this version does not act on objects of this kind", kind.name))
	}
	if err := broken.ToAggregate(); err != nil {
		return warnings, err
	}
	return warnings, r.checkQuota(ctx, object, old, dryRun)
}

// warnings are about a new object of a kind that nobody asks to validate.
func (r Reviewer) warnings(kind *kind, version string, content, oldContent map[string]any) []string {
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

func (r Reviewer) checkQuota(ctx context.Context, object, old runtime.Object, dryRun bool) error {
	binding, ok := object.(*workv1alpha2.ResourceBinding)
	if !ok || r.Quota == nil {
		return nil
	}
	oldBinding, _ := old.(*workv1alpha2.ResourceBinding)
	return r.Quota(ctx, binding, oldBinding, dryRun)
}

func (r Reviewer) newID() func() string {
	if r.NewID != nil {
		return r.NewID
	}
	return uuid.NewString
}

// undecodableError says that an object is not of the form of its kind.
type undecodableError struct{ err error }

func (e *undecodableError) Error() string { return e.err.Error() }
func (e *undecodableError) Unwrap() error { return e.err }

func isUndecodable(err error) bool {
	var undecodable *undecodableError
	return errors.As(err, &undecodable)
}
