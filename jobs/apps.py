from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"
    native_urls = "jobs.urls"

    def ready(self) -> None:
        from authz.services import owners
        from catalogs.services import admission, removal
        from jobs import tasks
        from jobs.services import leaving, templates
        from metalake import events
        from metalake.kinds import Kind

        tasks.register()
        admission.admit_with("alter_job_template", templates.admit)
        removal.before_removal(Kind.JOB_TEMPLATE, leaving.end_runs_below)
        events.subscribe_in_transaction(leaving.follow)
        owners.hand_over_with(leaving.hand_over_schedules)
