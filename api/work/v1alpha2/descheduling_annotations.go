package v1alpha2

// DescheduledFromAnnotation on a binding holds a JSON object with the clusters from which the
// descheduler recently took all replicas, and the time of this change. For 30 minutes, it explains
// that the scheduler removes such a cluster from the binding, so that the deletion guard does not
// count this removal as part of a mass deletion.
const DescheduledFromAnnotation = "work.karmada.io/descheduled-from"
