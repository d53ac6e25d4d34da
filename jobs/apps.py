from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"
    native_urls = "jobs.urls"

    def ready(self) -> None:
        from authz.services import owners
        from catalogs.services import admission, homes, removal
        from jobs import tasks
        from jobs.services import leaving, system, templates
        from metalake import events
        from metalake.kinds import Kind

        tasks.register()
        admission.admit_with("alter_job_template", templates.admit)
        homes.check_home_with(system.check_home)
        removal.before_removal(Kind.JOB_TEMPLATE, leaving.end_runs_below)
        events.subscribe_in_transaction(leaving.follow)
        owners.hand_over_with(leaving.hand_over_schedules)
